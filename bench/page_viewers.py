"""Viewers of the page without a browser: each asks for what the page does, and follows the stream.

python -m bench.page_viewers PORT VIEWERS

Prints a line once all follow, and another one with how many events came, when its input ends.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
from contextlib import closing, suppress

_LOADED = ("/", "/static/app.js", "/static/live.js", "/static/page.css", "/v1/duplicates?limit=50")


def main() -> None:
    """Follow until the input ends."""
    port, viewers = map(int, sys.argv[1:3])
    streams = [_opened(port) for _ in range(viewers)]
    counts = [0] * viewers
    threads = [
        threading.Thread(target=_follow, args=(one, counts, at)) for at, one in enumerate(streams)
    ]
    for thread in threads:
        thread.start()
    print("following", flush=True)
    sys.stdin.read()
    for one in streams:
        with suppress(OSError):  # The server has ended the stream.
            one.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    print(json.dumps({"events": sum(counts)}))


def _opened(port: int) -> socket.socket:
    """Load the page, and return the connection of its stream."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for path in _LOADED:
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise SystemExit(f"{path}: HTTP {answer.status}")
            answer.read()
    stream = socket.create_connection(("127.0.0.1", port))
    stream.sendall(b"GET /v1/duplicates/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return stream


def _follow(stream: socket.socket, counts: list[int], at: int) -> None:
    with closing(stream):
        while part := stream.recv(65_536):
            counts[at] += part.count(b"\ndata: ")


if __name__ == "__main__":
    main()
