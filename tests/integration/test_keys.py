"""Keys of any bytes, on a real broker: the same id in verdicts, tombstones and every command."""

import json
from hashlib import sha256
from typing import Final

import pytest

from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.checker.history import reason, verdict_of
from tests.support.command_line import on_kafka
from tests.support.ids_of_keys import ODD_KEYS, id_of_key
from tests.support.proof import prove
from worker.bus import Outgoing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

NUMBERS: Final = (5, 127, 128, 200, 255, 256, 65_536, -(2**63))
SECONDS: Final = 60


def long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def text(number: int) -> str:
    """Return a text that is like no other one's."""
    return " ".join(sha256(b"%d %d" % (number, part)).hexdigest() for part in range(4))


def send(application: ApplicationUnderTest, key: bytes | None, number: int) -> None:
    value = json.dumps({"text": text(number)}).encode()
    application.feed([Outgoing(application.topology.documents, 0, key, value)])


def forget(application: ApplicationUnderTest, ident: str) -> None:
    done = on_kafka("forget", "--config", application.config, ident)
    assert done.returncode == 0, done.stderr


def matched(application: ApplicationUnderTest, key: bytes) -> list[str]:
    """Return the ids that the document with this key matches."""
    records = (*application.audit.unique, *application.audit.duplicate)
    (record,) = [one for one in records if one.key == key and one.value is not None]
    return [ident for ident, _ in verdict_of(record).matches]


def test_any_key_is_an_id_that_forgets_and_explains(launch: Launch) -> None:
    application = launch(partitions=1)
    application.start("alpha")
    keys = [*map(long, NUMBERS), *(key for key in ODD_KEYS if key not in map(long, NUMBERS))]
    for number, key in enumerate(keys, 1):
        send(application, key, number)
    for number in range(1, len(keys) + 1):
        send(application, b"copy %d" % number, number)
    prove(application)
    assert not application.audit.rejected
    for number, key in enumerate(keys, 1):
        assert matched(application, b"copy %d" % number) == [id_of_key(key).decode()]
    ident = id_of_key(long(128)).decode()
    assert ident == "hex:0000000000000080"
    done = on_kafka("explain", "--json", "--kafka", "--config", application.config, ident, "copy 3")
    assert done.returncode == 0, done.stderr
    assert [side["id"] for side in json.loads(done.stdout)["documents"]] == [ident, "copy 3"]
    # Each is forgotten: by its key, by its id, and by an id that was cut.
    cut = keys.index(b"k" * 1_025) + 1
    application.feed([Outgoing(application.topology.documents, 0, long(127), None)])
    forget(application, ident)
    forget(application, id_of_key(keys[cut - 1]).decode())
    for number in (2, 3, cut):
        forget(application, f"copy {number}")
        send(application, b"again %d" % number, number)
    application.audit.finish(SECONDS)
    for number in (2, 3, cut):
        assert matched(application, b"again %d" % number) == []
    passed = [record.key for record in application.audit.duplicate if record.value is None]
    assert passed[:3] == [long(127), long(128), id_of_key(keys[cut - 1])]


@pytest.mark.slow
def test_longs_are_their_numbers_and_other_keys_are_said_and_redriven(launch: Launch) -> None:
    application = launch(
        partitions=1, settings={"documents": {"key": "long"}, "limits": {"reject_share": 1.0}}
    )
    application.start("alpha")
    for number in NUMBERS:
        send(application, long(number), number)
    send(application, b"128", 300)
    send(application, None, 128)
    application.audit.finish(SECONDS)
    assert [reason(record) for record in application.audit.rejected] == ["bad-id"]
    (record,) = application.audit.duplicate
    assert [ident for ident, _ in verdict_of(record).matches] == ["128"]
    said = application.worker("alpha").output()
    assert (
        f"{application.topology.documents}[0]@8: rejected: bad-id: the key has 3 bytes (hexadecimal"
        " 313238); documents.key is long, which takes 8 bytes"
    ) in said
    forget(application, "128")
    application.audit.finish(SECONDS)
    assert application.audit.unique[-1][4:6] == (long(128), None)
    # With the setting taken back, what was rejected is a document.
    application.worker("alpha").kill()
    changed = application.write_config("auto.toml", {"documents": {"key": "auto"}})
    done = on_kafka("init", "--accept", "--config", changed)
    assert done.returncode == 0, done.stderr
    done = on_kafka("redrive", "--config", changed, "--reason", "bad-id")
    assert done.returncode == 0, done.stderr
    application.worker("alpha").config = changed
    application.start("alpha")
    application.audit.until(
        lambda: any(record.key == b"128" for record in application.audit.unique),
        SECONDS,
        "the document that was rejected",
    )
