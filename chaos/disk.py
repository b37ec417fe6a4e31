"""A small file system that one worker has for itself, and that can be filled.

It is a tmpfs in a mount namespace of its own, so it needs root (or what root may do) and
leaves no mount behind: it goes with the process that holds it.
"""

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MEGABYTE: Final = 1 << 20
STOP_SECONDS: Final = 10.0
_HOLD: Final = 'mount -t tmpfs -o size="$2" tmpfs "$1" && echo mounted && exec cat >/dev/null'


class NoSmallDisk(Exception):
    """This machine lets nobody mount anything here; the message is what it said."""


class SmallDisk:
    """The file system; see `mounted`."""

    def __init__(self, holder: int, directory: Path) -> None:
        """Name the process in whose namespace ``directory`` is mounted."""
        self._holder = holder
        self._directory = directory
        # What the namespace sees is reached from outside by way of its process.
        self.inside = Path(f"/proc/{holder}/root") / directory.relative_to("/")

    def wrapper(self, working_directory: Path) -> list[str]:
        """Give the program that becomes another one which sees this disk."""
        return ["nsenter", f"--target={self._holder}", "--mount", f"--wd={working_directory}"]

    @property
    def _ballast(self) -> Path:
        return self.inside / "ballast"

    def fill(self) -> None:
        """Take all space that is left; also again, after the worker made some."""
        with self._ballast.open("ab", buffering=0) as ballast:
            try:
                while ballast.write(bytes(MEGABYTE)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def free(self) -> None:
        """Give the space back."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def mounted(directory: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a small disk on a directory.

    Raises:
        NoSmallDisk: not on this machine.
    """
    directory.mkdir(parents=True, exist_ok=True)
    command = ["unshare", "--mount", "--propagation=private", "sh", "-c", _HOLD, "sh"]
    try:
        holder = subprocess.Popen(
            [*command, str(directory), f"{megabytes}m"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise NoSmallDisk(str(error)) from None
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        said = holder.stdout.readline().strip()
        if said != "mounted":
            raise NoSmallDisk(said)
        yield SmallDisk(holder.pid, directory)
    finally:
        # `cat` ends with its input, also if this process is killed; the mount ends with it.
        holder.stdin.close()
        holder.wait(STOP_SECONDS)
        holder.stdout.close()
