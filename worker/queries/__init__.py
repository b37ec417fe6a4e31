"""Queries: what a text would match, from shards that are kept warm or lie in a directory."""
