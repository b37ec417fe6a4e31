"""Whatever reads a stranger's bytes: a list of all, and what hostile bytes do to each."""
