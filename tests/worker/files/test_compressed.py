"""Compressed files: whatever they expand to, memory stays flat."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.support.breadth import mostly_slow
from tests.support.command_line import ROOT, environment
from tests.worker.files.parts import lines_of
from worker.files.errors import FileError

LINES = b'{"id": 1}\n{"id": 2}\n'
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


@pytest.mark.parametrize("kind", COMPRESS)
def test_members_are_read_one_after_the_other(kind: str, tmp_path: Path) -> None:
    compress = COMPRESS[kind]
    for name in ("file", f"file.{kind}"):
        file = tmp_path / name
        file.write_bytes(compress(LINES) + compress(b"") + compress(LINES))
        assert [line.raw for line in lines_of(file)] == LINES.splitlines(keepends=True) * 2


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-9], "the {} data ends too early"),
        (lambda data: data + b"more, which is no member", "damaged {} data: "),
        (lambda _: LINES, "is not a {} file, despite its name"),
        (lambda _: b"", "is not a {} file, despite its name"),
    ],
)
def test_a_damaged_file_is_an_error(
    kind: str, damage: Callable[[bytes], bytes], says: str, tmp_path: Path
) -> None:
    file = tmp_path / f"docs.{kind}"
    file.write_bytes(damage(COMPRESS[kind](LINES)))
    name = {"gz": "gzip", "zst": "zstd"}.get(kind, kind)
    with pytest.raises(FileError, match=f"docs.{kind}: {says.format(name)}"):
        lines_of(file)


@pytest.mark.parametrize("suffix", ["gz", "xz"])
def test_padding_between_members_is_skipped(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"docs.{suffix}"
    data = COMPRESS[suffix](LINES)
    file.write_bytes(data + b"\0" * 8 + data + b"\0" * 512)
    assert len(lines_of(file)) == 4


SKIPPABLE = b"\x5a\x2a\x4d\x18\x04\0\0\0size"


@pytest.mark.parametrize(
    "before",
    [SKIPPABLE, SKIPPABLE * 3, b"\x50\x2a\x4d\x18" + (9_000).to_bytes(4, "little") + b"a" * 9_000],
)
def test_frames_of_zstd_that_hold_no_content_are_skipped(before: bytes, tmp_path: Path) -> None:
    frame = zstandard.compress(LINES)
    for name in ("file", "file.zst"):
        file = tmp_path / name
        file.write_bytes(before + frame + SKIPPABLE + frame + SKIPPABLE)
        assert [line.raw for line in lines_of(file)] == LINES.splitlines(keepends=True) * 2
    file.write_bytes(before + frame + SKIPPABLE[:-1])
    with pytest.raises(FileError, match="the zstd data ends too early"):
        lines_of(file)


_MAGIC = b"\x28\xb5\x2f\xfd"


def zstd_frame(window: int, blocks: bytes) -> bytes:
    """Return a frame with a window of ``2**window`` bytes."""
    return _MAGIC + b"\x00" + bytes([(window - 10) << 3]) + blocks


def repeated(count: int) -> bytes:
    """Return zstd blocks that each expand 4 bytes to 128 KiB; the last one ends the frame."""
    size = (128 << 10) << 3
    block = (size | 1 << 1).to_bytes(3, "little") + b"a"
    return block * (count - 1) + (size | 1 << 1 | 1).to_bytes(3, "little") + b"a"


@pytest.mark.parametrize("window", [28, 31])
def test_a_window_above_the_limit_is_refused_with_what_to_do(window: int, tmp_path: Path) -> None:
    file = tmp_path / "docs.zst"
    file.write_bytes(zstd_frame(window, repeated(1)))
    with pytest.raises(FileError, match=r"128 MiB to decompress.*: zstd -dc --long=31 FILE"):
        lines_of(file)


def test_a_window_of_zstds_own_limit_is_read(tmp_path: Path) -> None:
    file = tmp_path / "docs.zst"
    file.write_bytes(zstd_frame(27, repeated(9)))
    assert lines_of(file, most=1_000)[0].size == 9 * (128 << 10)


def test_an_xz_dictionary_above_the_limit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "docs.xz"
    chain = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 192 << 20}]
    data = bytearray(lzma.compress(b"a" * 100, filters=chain))
    file.write_bytes(data)
    with pytest.raises(FileError, match=r"docs.xz: needs more than 128 MiB.*: xz -dc FILE"):
        lines_of(file)


MEBIBYTE = 1 << 20
BOMBS: dict[str, Callable[[], bytes]] = {
    # One frame of 20 kB whose blocks make 640 MB; 4 kB of it used to be expanded at once.
    "zst": lambda: zstd_frame(23, repeated(5_000)),
    "gz": lambda: gzip.compress(b"a" * (64 * MEBIBYTE)) * 4,
    "xz": lambda: lzma.compress(b"a" * (64 * MEBIBYTE), preset=0) * 4,
    "bz2": lambda: bz2.compress(b"a" * (43 * MEBIBYTE)) * 6,
}
CHILD = """
import resource, sys
from pathlib import Path
from worker.files.inputs import Inputs
from worker.settings.documents import DocumentsSection

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

with Inputs([Path(sys.argv[1])], DocumentsSection()) as inputs:
    before = peak()
    sizes = [line.size for chunk in inputs.chunks(1_000_000) for line in chunk]
    print(sum(sizes), (peak() - before) >> 10)
"""


@pytest.mark.parametrize("kind", mostly_slow(BOMBS, "zst"))
def test_a_small_file_that_expands_takes_no_memory(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"bomb.{kind}"
    file.write_bytes(BOMBS[kind]())
    assert file.stat().st_size < MEBIBYTE
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(file)],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env=environment(),
    )
    size, grown = map(int, done.stdout.split())
    assert size >= 256 * MEBIBYTE
    assert grown < 64, f"{grown} MiB for a line that is skipped"
