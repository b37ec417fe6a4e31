"""``python -m bench [NAME…] [--quick]``: run the benchmarks, and check their targets."""

from __future__ import annotations

import argparse
import importlib
import time

from bench.report import Target, console, facts, show_targets
from localkafka.jars import KafkaUnavailable

BENCHMARKS = {
    "fingerprint": "signatures per second on one core, compared with datasketch",
    "scripts": "signatures by script and length, as multiples of datasketch's rate",
    "index": "cost of one index shard by the number of documents in it, compared with datasketch",
    "flood": "what copies and variants of a text cost an index shard, compared with new documents",
    "query": "time of a query on an index that goes on growing",
    "crowd": "queries answered a second by 1 to 200 clients at a time",
    "page": "when the page is painted, how soon a duplicate is on it, and what viewers cost",
    "library": "speed and memory of lsh.Index, compared with datasketch",
    "groups": "how well the first match tells connected documents",
    "group_store": "memory, time and disk of a million groups, as `neardup serve` keeps them",
    "decoys": "whether thousands of texts like an original make the index forget it",
    "payloads": "CPU from payload to frame, of whole and short texts",
    "hostile": "time to fingerprint hostile texts, compared with plain ones",
    "boilerplate": "texts on pages of many sites, with and without lists of lines to leave out",
    "deception": "disguised copies of comments that are found, and comments wrongly merged",
    "kafka": "documents per second on Kafka, compared with a plain copier and datasketch",
    "feeds": "the same for short comments, for Chinese, and after 2 million documents",
    "registry": "documents per second in Avro and in Protobuf, compared with JSON",
    "logs": "bytes that brokers keep of each document between the stages",
    "latency": "time from record timestamp to readable verdict, at 1,000 documents/s",
    "dedupe": "`neardup dedupe` on a million documents, compared with a script on datasketch",
    "memory": "peak memory and rate of `neardup dedupe` on a million short documents",
    "state": "CPU of `neardup dedupe --state`, file after file",
    "recovery": "time from the restart of a killed worker to its next verdict",
    "replay": "replay of one shard's log, and restore of a snapshot",
    "reindex": "`neardup reindex --from-documents` at 2,000 documents/s: verdicts and waits",
    "start": "duration of `neardup --help`, and time to a worker's first verdict",
    "wave": "size of the outputs for a wave of near copies",
    "accuracy": "recall and precision against exact similarities, compared with datasketch",
}

OPTIONS = {
    "flood": ("documents",),
    "index": ("documents", "shards", "window"),
    "query": ("documents", "rate"),
    "reindex": ("rate",),
}
"""The benchmarks that take sizes."""


def main() -> None:
    """Run the named benchmarks, or all of them."""
    listed = "\n".join(f"  {name:12} {what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Run the named benchmarks, or all of them.",
        epilog=f"benchmarks:\n{listed}\n\nNEARDUP_BENCH_DATA=FOLDER: use real documents."
        " NEARDUP_ACCURACY_DATA=FOLDER: corpora of *accuracy*, CORPUS/docs.jsonl.gz each."
        " NEARDUP_BENCH_INDEX=NUMBER: documents in the index of *recovery* and *replay*.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark; see below")
    parser.add_argument("--quick", action="store_true", help="small sizes, as a smoke test")
    parser.add_argument(
        "--documents",
        type=int,
        metavar="NUMBER",
        help="documents of *index* (2,000,000), *flood* (1,000,000) and *query* (500,000)",
    )
    parser.add_argument(
        "--shards",
        type=int,
        metavar="NUMBER",
        help="shards of *index*, which divide the bands (1)",
    )
    parser.add_argument(
        "--window",
        type=int,
        metavar="NUMBER",
        help="documents that *index* remembers; all by default",
    )
    parser.add_argument(
        "--rate",
        type=int,
        metavar="NUMBER",
        help="queries a second of *query* (200), documents a second of *reindex* (2,000)",
    )
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}")
    console.print(facts(), style="dim")
    targets: list[Target] = []
    for name in given.names or BENCHMARKS:
        console.rule(f"[bold]{name}")
        began = time.monotonic()
        try:
            sizes = {option: getattr(given, option) for option in OPTIONS.get(name, ())}
            targets += _run(name, sizes, quick=given.quick)
        except KafkaUnavailable as error:
            console.print(f"skipped: {error}", style="yellow")
        console.print(f"{time.monotonic() - began:.0f} s", style="dim")
    show_targets(targets)


def _run(name: str, sizes: dict[str, int | None], *, quick: bool) -> list[Target]:
    module = importlib.import_module(f"bench.{name}")
    given = {key: size for key, size in sizes.items() if size is not None}
    measured: list[Target] = module.run(quick=quick, **given)
    return measured


if __name__ == "__main__":
    main()
