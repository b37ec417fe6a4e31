"""Change while running: the generations of an index, which is in use, and who takes over when."""
