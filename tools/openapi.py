"""Prints the description of the API of `neardup serve`: ``python -m tools.openapi``."""

import sys

from worker.serve.openapi import described

if __name__ == "__main__":
    sys.stdout.write(described().decode())
