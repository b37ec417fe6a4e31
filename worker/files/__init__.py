"""Files that hold state, for this process and its user alone."""
