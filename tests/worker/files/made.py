"""Mails and records of WARC files, as programs write them."""

from __future__ import annotations

from collections.abc import Mapping
from email.message import EmailMessage

BODY = "Grüße aus dem Büro.\nFrom here on, all is well.\n"


def message(number: int = 1, body: str = BODY, charset: str = "iso-8859-15") -> EmailMessage:
    made = EmailMessage()
    made["Message-ID"] = f"<{number}@example.org>"
    made["Subject"] = f"Büro {number}"
    made["From"] = "Jörg <j@example.org>"
    made["Date"] = "Wed, 31 Jan 2024 12:00:00 +0100"
    made.set_content(body, charset=charset)
    return made


def record(kind: str, block: bytes, number: int = 1, type_: str = "", **more: str) -> bytes:
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{number}>",
        "WARC-Target-URI": f"http://example.org/{number}",
        "WARC-Date": "2024-01-31T12:00:00Z",
        "Content-Type": type_ or "application/http; msgtype=response",
        **more,
        "Content-Length": str(len(block)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return b"WARC/1.0\r\n" + head.encode() + b"\r\n" + block + b"\r\n\r\n"


def response(body: bytes, status: str = "200 OK", fields: Mapping[str, str] | None = None) -> bytes:
    given = {"Content-Type": "text/html; charset=utf-8", **(fields or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body
