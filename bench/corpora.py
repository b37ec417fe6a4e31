"""The corpora that accuracy is measured on."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path

_SAMPLES = Path(__file__).parents[1] / "worker" / "samples"


def corpora(names: Sequence[str] = ()) -> list[Path]:
    """Return the files of the corpora with these names, or all.

    NEARDUP_ACCURACY_DATA names a folder with CORPUS/docs.jsonl.gz; without it, these are the
    samples that neardup ships.
    """
    folder = os.environ.get("NEARDUP_ACCURACY_DATA")
    found = _SAMPLES.glob("*.jsonl.gz") if folder is None else Path(folder).glob("*/docs.jsonl.gz")
    return [path for path in sorted(found) if not names or name_of(path) in names]


def name_of(path: Path) -> str:
    """Return the name of a corpus."""
    return path.parent.name if path.name == "docs.jsonl.gz" else path.name.partition(".")[0]


def texts_of(path: Path) -> list[str]:
    """Return the texts of a corpus."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]
