"""Whatever mails and archives consist of, the time that they take grows as they do."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable
from typing import cast

import pytest

from tests.worker.files.made import record, response
from worker.files.compressed import Reader
from worker.files.errors import DocumentFault, InputFault
from worker.files.mails import mail, messages
from worker.files.warc import records

BOX = b"From a@b Wed Jan 31 12:00:00 2024\n"
ALTERNATIVE = b"Content-Type: multipart/alternative; boundary=b\n\n--b\n\n"
LEVELS = b"".join(
    b"Content-Type: multipart/mixed; boundary=%s\n\n--%s\n" % (b"x" * n, b"x" * n)
    for n in range(1, 20)
)
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "mail, words": lambda n: b"Subject: " + b"=?a?q?" * n,
    "mail, parameters": lambda n: b'Content-Type: a/b; x="' + b";" * n,
    "mail, continuations": lambda n: b"Content-Type: a/b" + b"; x*1*=''a" * n,
    "mail, folds": lambda n: b"X: y" + b"\n z" * n,
    "mail, fields": lambda n: b"X: y\n" * n,
    "mail, comments": lambda n: b"Date: " + b"(" * n,
    "mail, parts": lambda n: b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * n,
    "mail, near misses": lambda n: LEVELS + b"\n" + b"--xxxxxxxxxxxxxxxxxxxxxx\n" * n,
    "mail, levels": lambda n: b"Content-Type: message/rfc822\n\n" * n,
    "mail, alternatives": lambda n: (
        ALTERNATIVE + b"a b " * n + b"\n--b\nContent-Type: text/html\n\n" + b"<p>c&#" * n
    ),
    "mail, base64": lambda n: b"Content-Transfer-Encoding: base64\n\n" + b"=YQ!" * n,
    "mail, quoted-printable": lambda n: b"Content-Transfer-Encoding: quoted-printable\n\n=\n" * n,
    "mail, comments in a page": lambda n: b"Content-Type: text/html\n\n" + b"<!--<meta " * n,
    "box, messages": lambda n: (BOX + b"Subject: =?a?q?\n\nx\n") * n,
    "box, lines": lambda n: BOX + b"X: y\n\n" + b"\n" * n,
    "box, separators": lambda n: BOX + b"X: y\n\n" + b"From Mon Mon Mon\nX: y\n" * n,
    "warc, chunks": lambda n: record(
        "response", response(b"1\r\na\r\n" * n, fields={"Transfer-Encoding": "chunked"})
    ),
    "warc, codings": lambda n: record(
        "response", response(b"a", fields={"Content-Encoding": "gzip," * n})
    ),
    "warc, records": lambda n: b"WARC/1.0\r\nContent-Length: 0\r\n\r\n" * n,
    "warc, fields": lambda n: b"WARC/1.0\r\n" + b"X: y\r\n" * n,
}


def seconds(name: str, data: bytes) -> float:
    """Return what it takes to read a file, at best."""
    best = float("inf")
    for _ in range(3):
        file: Reader = io.BufferedReader(cast("io.RawIOBase", io.BytesIO(data)))
        began = time.process_time()
        try:
            if name.startswith("mail"):
                mail(file, "x", None)
            elif name.startswith("box"):
                list(messages(file, None))
            else:
                list(records(file, 1_000_000, None, Counter()))
        except (DocumentFault, InputFault):
            pass
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_bytes_and_no_faster(name: str) -> None:
    make = HOSTILE[name]
    count = 50_000 // (len(make(1_001)) - len(make(1_000)))
    small, large = make(count), make(8 * count)
    took = seconds(name, large)
    assert took < 3 * 8 * max(seconds(name, small), 1e-3)
    assert took < 10e-6 * len(large)
