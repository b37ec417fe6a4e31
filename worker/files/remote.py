"""Files in object stores and on web servers, read through fsspec."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast
from urllib.parse import urlsplit

from worker.files.errors import FileError, InputFault
from worker.settings.secrets import without_credentials

_EXTRAS = {
    "s3": "s3",
    "gs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "http": "http",
    "https": "http",
    "hf": "hf",
}
"""What to install for each kind of address."""
_WEB = ("http", "https")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_MAGIC = re.compile(r"[*?\[]")
_BLOCK_BYTES = 5 << 20
"""How much of an object is fetched at once."""
_CONNECT_SECONDS, _READ_SECONDS = 30, 120
"""How long a web server may be silent. The whole file may take any time."""


class Remote(NamedTuple):
    """A file of a file system of fsspec.

    name: its address, without what may be a secret.
    size: None if the server doesn't say it.
    """

    fs: Any
    path: str
    name: str
    size: int | None

    def open(self, *, seekable: bool) -> BinaryIO:
        """Open the file; of one that needn't be ``seekable``, a web server sends all at once.

        Raises:
            InputFault: it can't be opened. Reading raises the same if the connection fails.
        """
        streamed = self.path.lower().startswith(("http://", "https://")) and not seekable
        with _saying(InputFault, self.path):
            file = self.fs.open(self.path, "rb", block_size=0 if streamed else _BLOCK_BYTES)
        return cast("BinaryIO", _Whole(file, self, seekable=not streamed))


def is_address(argument: str) -> bool:
    """Return whether an argument is an address, such as ``s3://bucket/key``, and no local path."""
    return _ADDRESS.match(argument) is not None


def shown_address(address: str) -> str:
    """Return an address without user, password and query, any of which may be a secret."""
    try:
        parts = urlsplit(address)
    except ValueError:  # It is none, and will be refused.
        return without_credentials(address)
    if parts.scheme not in _WEB:
        return without_credentials(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def stored(address: str) -> tuple[list[Remote], int, bool]:
    """Return the files at an address, where in their names what differs begins, and if it is one.

    A pattern stands for the files that match it; another address, for the file, or for all files
    below it. On a web server, an address is always one file.

    Raises:
        FileError: nothing is there, or the store can't be reached.
    """
    shown = shown_address(address)
    scheme = address.partition("://")[0].lower()
    if scheme not in _EXTRAS:
        takes = ", ".join(f"{each}://" for each in _EXTRAS)
        raise FileError(f"{shown}: addresses begin with {takes}")
    fs, path = _file_system(address, scheme)
    with _saying(lambda why: FileError(f"{shown}: {why}"), address):
        if scheme in _WEB:
            return [Remote(fs, path, shown, fs.info(path).get("size"))], _last(shown), True
        fs.invalidate_cache()
        magic = _MAGIC.search(path)
        if magic is None:
            info = fs.info(path)
            if info["type"] != "directory":
                return [Remote(fs, path, shown, info.get("size"))], _last(shown), True
            found, fixed = fs.find(path, detail=True), path
        else:
            found = fs.glob(path, detail=True)
            fixed = path[: magic.start()].rpartition("/")[0]
        files = [
            Remote(fs, name, fs.unstrip_protocol(name), info.get("size"))
            for name, info in found.items()
            if info["type"] == "file"
        ]
        if not files:
            raise FileError(f"{shown}: no file is there")
        return files, len(fs.unstrip_protocol(fixed).rstrip("/")) + 1, False


def _last(shown: str) -> int:
    return shown.rstrip("/").rfind("/") + 1


def _file_system(address: str, scheme: str) -> tuple[Any, str]:
    try:
        import fsspec  # noqa: PLC0415 -- slow to load, and files are local as a rule

        options: dict[str, Any] = {}
        if scheme in _WEB:
            import aiohttp  # noqa: PLC0415 -- an extra

            options["client_kwargs"] = {
                # Bytes as they are stored: a compressed file is decompressed here.
                "auto_decompress": False,
                "headers": {"Accept-Encoding": "identity"},
                "timeout": aiohttp.ClientTimeout(
                    total=None, sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS
                ),
            }
        fs, path = fsspec.url_to_fs(address, **options)
    except ImportError:
        raise FileError(
            f"{shown_address(address)}: needs more: pip install 'neardup[{_EXTRAS[scheme]}]'"
        ) from None
    except ValueError as error:
        why = _without(str(error), address)
        raise FileError(f"{shown_address(address)}: {why}") from None
    return fs, str(path)


class _Whole(io.RawIOBase):
    """A file that is read to the end that it had when it was listed, or raises `InputFault`.

    A connection that breaks must not look like the end of a file.
    """

    def __init__(self, file: Any, source: Remote, *, seekable: bool) -> None:  # noqa: ANN401 -- fsspec has no types
        self._file = file
        self._path = source.path
        self._size = source.size
        self._seekable = seekable
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._seekable

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with _saying(self._broken, self._path):
            self._at = int(self._file.seek(offset, whence))
        return self._at

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        with _saying(self._broken, self._path):
            data = self._file.read(len(buffer))
        if not data and self._size is not None and self._at < self._size:
            raise self._broken(f"it ended there, and has {self._size:,}")
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _broken(self, why: str) -> InputFault:
        return InputFault(f"the connection failed after {self._at:,} bytes: {why}")


@contextmanager
def _saying(made: Callable[[str], Exception], address: str) -> Iterator[None]:
    """Raise what is ``made`` of the reason in place of an error of fsspec or a client below it."""
    try:
        yield
    except (FileError, InputFault):
        raise
    except Exception as error:  # noqa: BLE001 -- each store's client has errors of its own
        _raise(made, error, address)


def _raise(made: Callable[[str], Exception], error: Exception, address: str) -> NoReturn:
    found = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ else error
    status = getattr(found, "status", None)
    if isinstance(status, int):
        why = f"HTTP {status} {getattr(found, 'message', '')}".strip()
    elif isinstance(found, FileNotFoundError):
        why = "No such file or directory"
    else:
        why = _without(str(found), address) or type(found).__name__
    raise made(why) from None


def _without(text: str, address: str) -> str:
    """Return a message in one line, without what may be a secret in addresses."""
    return without_credentials(" ".join(text.replace(address, shown_address(address)).split()))
