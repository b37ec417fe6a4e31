"""Each module that takes bytes apart is on the list of readers, or says why it need not be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.readers.readers import READERS

ROOT: Final = Path(__file__).resolve().parents[2]

TAKES_APART: Final = re.compile(
    r"""(?x)
    msgspec\.(json|msgpack)\.(decode|Decoder)\b | \bjson\.loads?\( | \btomllib\.loads?\(
    | \bcsv\.reader\( | \bnp\.(frombuffer|load)\( | \b(Struct|struct)\(" | \bunpack_from\(
    | \bint\.from_bytes\( | \b(From|ParseFrom)String\( | \bparse_schema\( | \bb64decode\(
    | \bParquetFile\(
    | \bBytesParser\( | \bread_(mail|payloads)\( | \bdecompressobj\( | Decompressor\(
    | \b_core\.Contents\( | \bimport\ pickle
    """
)

OTHERS: Final = {
    "lsh.tuning": "numbers of its own",
    "lsh.mixing": "digests that it has just made",
    "worker.bus.kafka.client_reports": "librdkafka's statistics",
    "worker.bus.memory.topics": "a hash",
    "worker.cli.demo": "verdicts of the same process",
    "worker.cli.query": "what it has just written",
    "worker.cli.run_groups": "a file that only this process has",
    "worker.files.tables": "verdicts of the same process, and tables that it has just read",
    "worker.formats.registry.client": "tests/worker/formats/registry has its answers",
    "worker.formats.registry.exchange": "tests/worker/formats/registry has its answers",
    "worker.groups.rows": "rows that only this process writes, with RocksDB's checksums",
    "worker.groups.store": "rows that only this process writes, with RocksDB's checksums",
    "worker.groups.clock": "rows that only this process writes, with RocksDB's checksums",
    "worker.measuring.evaluation": "verdicts of the same process",
    "worker.corrections.service": "notes, which frames with others are refused for",
    "worker.serve.correcting": "the same",
    "worker.settings.loading": "the settings of who starts it",
}
"""What takes bytes apart that no stranger has written."""


def modules_that_take_apart() -> set[str]:
    found = set()
    for package in ("lsh", "worker"):
        for path in (ROOT / package).rglob("*.py"):
            if TAKES_APART.search(path.read_text(encoding="utf-8")):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found.add(name.removesuffix(".__init__"))
    return found


def test_every_reader_is_on_the_list() -> None:
    listed = {module for reader in READERS for module in reader.modules}
    assert modules_that_take_apart() - listed - OTHERS.keys() == set()


def test_what_need_not_be_on_it_still_takes_bytes_apart() -> None:
    assert OTHERS.keys() <= modules_that_take_apart()
