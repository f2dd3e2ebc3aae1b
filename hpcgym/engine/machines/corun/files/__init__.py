"""The file system that jobs of a machine share."""
