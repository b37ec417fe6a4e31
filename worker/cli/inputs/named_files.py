"""The files that arguments name: files, directories, patterns and addresses."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple, TypeAlias

from worker.cli.errors import CommandError
from worker.cli.inputs.mailboxes import is_mailbox
from worker.cli.inputs.mails import is_mail
from worker.cli.inputs.reading import DATA, KINDS, TEXTS, Reading, suffix_of
from worker.cli.inputs.remote import Remote, is_address, stored

__all__ = ["Argument", "Found", "Named", "named_files", "natural"]

Argument: TypeAlias = Path | str
"""What names files: a path, also as a text, or an address such as ``s3://bucket/key``."""

_PEEK = 4_096
_NUMBER = re.compile(r"0*([0-9]+)")


class Named(NamedTuple):
    """A file, and where in its path the name begins by which its documents are called.

    remote: how to open it, if it isn't a local file.
    """

    path: str
    at: int
    remote: Remote | None = None

    @property
    def base(self) -> str:
        """Return that name."""
        return self.path[self.at :]


class Found(NamedTuple):
    """The files to read, in order; how many others were left out of directories, by what they are.

    ``out_of_order``: two files that were given in the order of their letters, and whose numbers
    have another one.
    """

    files: list[Named]
    left_out: Counter[str]
    out_of_order: tuple[str, str] | None


def natural(path: str) -> tuple[str, str]:
    """Return the key by which paths are sorted: part by part, and numbers by their values."""
    spelt = _NUMBER.sub(lambda found: f"{len(found[1]):03}{found[1]}", path)
    return spelt.replace(os.sep, "\0"), path


def named_files(arguments: Sequence[Argument], reading: Reading) -> Found:
    """Return the files to read: arguments in the order in which they are given.

    A directory stands for all files in and below it whose suffix is known, without hidden ones. A
    pattern stands for the files that match it. Both are sorted by `natural`.

    Raises:
        CommandError: a directory or a pattern stands for no file, or it isn't clear for which.
    """
    left_out: Counter[str] = Counter()
    files: list[Named] = []
    given: list[str] = []
    for each in arguments:
        if is_address(str(each)):
            files += _at(str(each), reading, left_out)
            continue
        argument = Path(each)
        if argument.is_dir():
            files += _below(argument, reading, left_out)
        elif _is_pattern(argument):
            files += _matching(str(argument), left_out)
        else:
            given.append(str(argument))
            files.append(Named(str(argument), len(str(argument)) - len(argument.name)))
    if len(arguments) > 1 and len({each.base for each in files}) < len(files):
        files = [each._replace(at=0) for each in files]
    return Found(files, left_out, _out_of_order(given))


def _out_of_order(given: Sequence[str]) -> tuple[str, str] | None:
    """Return the first files that a shell may have sorted by letters instead of numbers."""
    if list(given) != sorted(given):
        return None
    return next((pair for pair in pairwise(given) if natural(pair[0]) > natural(pair[1])), None)


def _at(address: str, reading: Reading, left_out: Counter[str]) -> list[Named]:
    """Return the files at an address; below one, those that a directory would stand for."""
    found, at, is_one = stored(address)
    names = {each.name: each for each in found}
    if "/." not in address:  # A star stands for no dot at the beginning.
        names = {name: one for name, one in names.items() if "/." not in name[at - 1 :]}
        left_out["hidden"] += len(found) - len(names)
    if not is_one and not glob.has_magic(address):
        names = {name: names[name] for name in _known(names, at, reading.suffixes, left_out)}
        if not names:
            raise CommandError(_nothing_known(address, reading))
        _refuse_unclear(address, list(names))
    return [Named(name, at, names[name]) for name in sorted(names, key=natural)]


def _known(
    names: Iterable[str], at: int, known: Collection[str], left_out: Counter[str]
) -> Iterator[str]:
    for name in names:
        if any(part.startswith((".", "_")) for part in name[at:].split("/")):
            left_out["hidden"] += 1
        elif suffix_of(name) not in known:
            left_out[PurePath(name).suffix or "without a suffix"] += 1
        else:
            yield name


def _nothing_known(place: object, reading: Reading) -> str:
    listed = ", ".join(sorted(reading.suffixes))
    return f"{place}: no file in it has a known suffix ({listed}); name others by a pattern"


def _is_pattern(argument: Path) -> bool:
    return glob.has_magic(str(argument)) and not argument.exists()


def _matching(pattern: str, left_out: Counter[str]) -> list[Named]:
    """Return the files that match, each once: a link may lead to where it is."""
    fixed = PurePath(pattern)
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    at = 0 if str(fixed) == "." else len(str(fixed).rstrip(os.sep)) + 1
    found = (path for path in glob.iglob(pattern, recursive=True) if not os.path.isdir(path))  # noqa: PTH112, PTH207 -- of any root
    shortest: dict[str, str] = {}
    count = 0
    for count, path in enumerate(found, 1):  # noqa: B007 -- it is used below
        real = os.path.realpath(path)
        shortest[real] = min(path, shortest.get(real, path), key=len)
    if not shortest:
        raise CommandError(f"{pattern}: no file matches this pattern")
    left_out["links to files that are read"] += count - len(shortest)
    return [Named(path, at) for path in sorted(shortest.values(), key=natural)]


def _below(directory: Path, reading: Reading, left_out: Counter[str]) -> list[Named]:
    root = str(directory)
    at = len(root.rstrip(os.sep)) + 1
    found = sorted(_walked(root, reading, left_out), key=natural)
    if not found:
        raise CommandError(_nothing_known(directory, reading))
    _refuse_unclear(directory, found)
    return [Named(path, at) for path in found]


def _walked(root: str, reading: Reading, left_out: Counter[str]) -> Iterator[str]:
    by_name = reading.format is None

    def refuse(error: OSError) -> None:
        raise CommandError(f"{error.filename}: {error.strerror}")

    for folder, folders, names in os.walk(root, onerror=refuse):
        hidden = [name for name in (*folders, *names) if name.startswith((".", "_"))]
        left_out["hidden"] += len(hidden)
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        left_out["links to directories"] += sum(Path(folder, name).is_symlink() for name in folders)
        for name in names:
            if name.startswith((".", "_")):
                continue
            path = os.path.join(folder, name)  # noqa: PTH118 -- of a million files
            if suffix_of(name) not in reading.suffixes and not (by_name and _has_mail(path)):
                left_out[PurePath(name).suffix or "without a suffix"] += 1
            elif (why := _no_file(path)) is not None:
                left_out[why] += 1
            else:
                yield path


def _has_mail(path: str) -> bool:
    """Return whether a file of unknown suffix is a mail or a mailbox, as those of a Maildir are."""
    if suffix_of(path) in KINDS or _no_file(path) is not None:
        return False
    try:
        with Path(path).open("rb") as file:
            start = file.read(_PEEK)
    except OSError:
        return False
    return is_mail(start) or is_mailbox(start)


def _no_file(path: str) -> str | None:
    """Return what a name stands for if it isn't a file. To open a pipe would take for ever."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 -- of a million files
    except OSError:
        return "broken links"
    return None if stat.S_ISREG(mode) else "pipes and devices"


def _refuse_unclear(directory: object, found: Sequence[str]) -> None:
    """Refuse a directory with texts beside data: nobody can say what a README or a table is."""
    suffixes = Counter(map(suffix_of, found))
    data, texts = (
        ", ".join(f"{n:,} {suffix}" for suffix, n in suffixes.items() if KINDS.get(suffix) in kinds)
        for kinds in (DATA, TEXTS)
    )
    if data and texts:
        raise CommandError(
            f"{directory}: has files of documents ({data}) beside texts ({texts}); --format json"
            " reads the former, --format text the latter, each as a document"
        )
