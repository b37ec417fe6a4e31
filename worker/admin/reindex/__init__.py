"""Replacing the index of a running application by its next generation."""
