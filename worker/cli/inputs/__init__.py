"""What files contain: documents, line by line, from several formats."""

from __future__ import annotations

from worker.cli.inputs.files import Inputs
from worker.cli.inputs.named_files import Argument
from worker.cli.inputs.reading import Reading

__all__ = ["Argument", "Inputs", "Reading"]
