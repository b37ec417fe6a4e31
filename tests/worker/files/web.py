"""A web server of files on this machine, as good or as bad as a test wants it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Site:
    """Files by path.

    status: what is answered instead of them.
    ends_at: after how many bytes of a file the connection breaks.
    ranges: whether parts can be asked for.
    sized: whether the server says how long a file is.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.status = 200
        self.ends_at: int | None = None
        self.ranges = True
        self.sized = True
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def served(files: Mapping[str, bytes]) -> Iterator[Site]:
    """Serve files on a free port until the block ends."""
    site = Site(files)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            site.asked.append(f"{self.command} {self.path}")
            content = site.files.get(self.path.partition("?")[0])
            if site.status != 200 or content is None:
                self.send_error(site.status if content is not None else 404)
                return
            part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if part is not None and site.ranges:
                begin, end = int(part[1]), int(part[2]) + 1
                self.send_response(206)
                last = min(end, len(content)) - 1
                self.send_header("Content-Range", f"bytes {begin}-{last}/{len(content)}")
                content = content[begin:end]
            else:
                self.send_response(200)
            if site.sized:
                self.send_header("Content-Length", str(len(content)))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            if body:
                self.wfile.write(content[: site.ends_at])
            self.close_connection = site.ends_at is not None or not site.sized

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 -- its names
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
