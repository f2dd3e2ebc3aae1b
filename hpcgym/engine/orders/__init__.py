"""The order of the queue: scores, what weights make of features, which blocks need no look."""
