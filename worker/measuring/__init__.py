"""Measures how right verdicts are, and what other rules would find."""
