"""Groups: the connected components of published matches, kept by whoever follows the log."""
