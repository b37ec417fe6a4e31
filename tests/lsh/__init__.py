"""Tests of `lsh`, the pure part."""
