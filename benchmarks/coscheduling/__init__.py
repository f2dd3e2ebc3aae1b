"""The results of document 003 (ELiSE) on co-scheduling, computed anew."""
