"""What files contain: documents, line by line, from several formats."""

from __future__ import annotations
