"""Faults on a real cluster: a proxy, a nemesis, cells of a matrix, and a soak."""
