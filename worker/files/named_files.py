"""The files that arguments name: files, directories, patterns and addresses."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple, TypeAlias

from worker.files.errors import FileError
from worker.files.mails import is_mail, is_mailbox
from worker.files.reading import DATA, KINDS, TEXTS, Reading, suffix_of
from worker.files.remote import Remote, is_address, stored

Argument: TypeAlias = Path | str
"""What names files: a path, also as a text, or an address such as ``s3://bucket/key``."""

_PEEK = 4_096
_OUTSIDE = "links out of the folder"
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
    """Return the files to read, each once: arguments in the order in which they are given.

    A directory stands for all files in and below it whose suffix is known, without hidden ones. A
    pattern stands for the files that match it; ``**`` doesn't go through links. Both are sorted by
    `natural`, and links in them lead to nothing outside of them, unless that is asked for.

    Raises:
        FileError: a directory or a pattern stands for no file, or it isn't clear for which.
    """
    left_out: Counter[str] = Counter()
    files: list[Named] = []
    given: list[str] = []
    known: set[object] = set()
    for each in arguments:
        if is_address(str(each)):
            found = _at(str(each), reading, left_out)
        else:
            argument = Path(each)
            if argument.is_dir():
                found = _below(argument, reading, left_out)
            elif _is_pattern(argument):
                found = _matching(str(argument), reading, left_out)
            else:
                given.append(str(argument))
                found = [Named(str(argument), len(str(argument)) - len(argument.name))]
        files += _new(found, known, left_out)
    if len(arguments) > 1 and len({each.base for each in files}) < len(files):
        files = [each._replace(at=0) for each in files]
    return Found(files, left_out, _out_of_order(given))


def _new(found: Sequence[Named], known: set[object], left_out: Counter[str]) -> list[Named]:
    """Return the files that aren't known yet, in their order, and know them.

    Of several names of a file, the one is taken that is no link, then the shortest.
    """
    best: dict[object, Named] = {}
    for each in sorted(found, key=lambda each: (os.path.islink(each.path), len(each.path))):  # noqa: PTH114 -- of a million files
        best.setdefault(_identity(each), each)
    new = {each.path for file, each in best.items() if file not in known}
    known.update(best)
    left_out["files named again"] += len(found) - len(new)
    return [each for each in found if each.path in new]


def _identity(named: Named) -> object:
    """Return what is the same for all names of a file."""
    if named.remote is not None:
        return named.remote.path
    try:
        status = os.stat(named.path)  # noqa: PTH116 -- of a million files
    except OSError:  # Opening it says why.
        return named.path
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(named.path)


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
            raise FileError(_nothing_known(address, reading))
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


def _matching(pattern: str, reading: Reading, left_out: Counter[str]) -> list[Named]:
    fixed = PurePath(pattern)
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    at = 0 if str(fixed) == "." else len(str(fixed).rstrip(os.sep)) + 1
    below = pattern[at:]
    if PurePath(below).name == "**":  # Of `Path.glob`, it stands for directories alone.
        below += "/*"
    try:
        matches = set(map(str, Path(fixed).glob(below)))
    except (ValueError, NotImplementedError) as error:
        raise FileError(f"{pattern}: {error}") from None
    if "/." not in f"/{below}":  # A star stands for no dot at the beginning.
        matches = {path for path in matches if "/." not in f"/{path[at:]}"}
    found = list(_files(sorted(matches, key=natural), str(fixed), reading, left_out))
    if not found:
        raise FileError(f"{pattern}: no file matches this pattern{_elsewhere(left_out)}")
    return [Named(path, at) for path in found]


def _below(directory: Path, reading: Reading, left_out: Counter[str]) -> list[Named]:
    root = str(directory)
    at = len(root.rstrip(os.sep)) + 1
    walked = sorted(_walked(root, reading, left_out), key=natural)
    found = list(_files(walked, root, reading, left_out))
    if not found:
        raise FileError(_nothing_known(directory, reading) + _elsewhere(left_out))
    _refuse_unclear(directory, found)
    return [Named(path, at) for path in found]


def _walked(root: str, reading: Reading, left_out: Counter[str]) -> Iterator[str]:
    """Yield the paths below a directory that have a known suffix, or are mails by their content."""
    by_name = reading.format is None

    def refuse(error: OSError) -> None:
        raise FileError(f"{error.filename}: {error.strerror}")

    been = set()
    for folder, folders, names in os.walk(root, onerror=refuse, followlinks=reading.follow_links):
        status = os.stat(folder)  # noqa: PTH116 -- of a million
        if (status.st_dev, status.st_ino) in been:
            folders.clear()  # A link has led to where the walk has been.
            continue
        been.add((status.st_dev, status.st_ino))
        hidden = [name for name in (*folders, *names) if name.startswith((".", "_"))]
        left_out["hidden"] += len(hidden)
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        if not reading.follow_links:
            links = sum(Path(folder, name).is_symlink() for name in folders)
            left_out["links to directories"] += links
        for name in names:
            if name.startswith((".", "_")):
                continue
            path = os.path.join(folder, name)  # noqa: PTH118 -- of a million files
            if suffix_of(name) not in reading.suffixes and not (by_name and _has_mail(path)):
                left_out[PurePath(name).suffix or "without a suffix"] += 1
            else:
                yield path


def _files(
    paths: Iterable[str], root: str, reading: Reading, left_out: Counter[str]
) -> Iterator[str]:
    """Yield the paths that lead to files, below ``root`` unless links may lead out of it."""
    real = cache(os.path.realpath)
    top = os.path.join(real(root), "")  # noqa: PTH118 -- as below
    state = os.path.join(real(reading.state or os.devnull), "")  # noqa: PTH118 -- as below
    for path in paths:
        if (why := _no_file(path)) is not None:
            left_out[why] += why != "directories"
            continue
        folder, name = os.path.split(path)
        place = real(path) if os.path.islink(path) else os.path.join(real(folder), name)  # noqa: PTH114, PTH118 -- of a million files
        if place.startswith(state):
            left_out["files of --state"] += 1
        elif reading.follow_links or place.startswith(top):
            yield path
        else:
            left_out[_OUTSIDE] += 1


def _elsewhere(left_out: Counter[str]) -> str:
    outside = left_out[_OUTSIDE] + left_out["links to directories"]
    return "; there are links, and --follow-links follows them out of it" if outside else ""


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
    if stat.S_ISREG(mode):
        return None
    return "directories" if stat.S_ISDIR(mode) else "pipes and devices"


def _refuse_unclear(directory: object, found: Sequence[str]) -> None:
    """Refuse a directory with texts beside data: nobody can say what a README or a table is."""
    suffixes = Counter(map(suffix_of, found))
    data, texts = (
        ", ".join(f"{n:,} {suffix}" for suffix, n in suffixes.items() if KINDS.get(suffix) in kinds)
        for kinds in (DATA, TEXTS)
    )
    if data and texts:
        raise FileError(
            f"{directory}: has files of documents ({data}) beside texts ({texts}); --format json"
            " reads the former, --format text the latter, each as a document"
        )
