"""What files contain: documents, line by line, from several formats."""

from __future__ import annotations

from worker.cli.inputs.files import Inputs
from worker.cli.inputs.reading import Reading

__all__ = ["Inputs", "Reading"]
