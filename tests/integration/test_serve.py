"""`neardup serve` beside a worker on Kafka: it tells verdicts, corrects them, comes back."""

import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.checker.history import verdict_of
from tests.support.server_process import ANY_PORTS, Server, serving
from tests.support.texts import near_copies
from worker.corrections.state import erasure_name
from worker.wire.headers import ALLOWED_BY

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

TEXTS = near_copies(153, 5)
WAIT_SECONDS = 60.0


def write(directory: Path, ident: str, text: str) -> Path:
    path = directory / f"{ident}.json"
    path.write_text(json.dumps({"id": ident, "text": text}))
    return path


def published(application: ApplicationUnderTest, first: int, last: int) -> None:
    """Feed some of the texts, and wait for their verdicts."""
    application.feed(application.documents(TEXTS[first:last]))
    audit = application.audit
    audit.until(lambda: len(audit.records) == last, WAIT_SECONDS, f"{last} verdicts")


def caught_up(server: Server, application: ApplicationUnderTest, path: Path) -> bool:
    """Return whether all frames so far are applied."""
    if not server.ready():
        return False
    last = application.fingerprints()[-1].offset
    return bool(server.ask(path)["position"] > last)


def _shows(server: Server, application: ApplicationUnderTest) -> None:
    """Check what the page reads: owners, rejections, duplicates, their texts and their matches."""

    def flow() -> Any:  # noqa: ANN401 -- JSON
        return server.get("/v1/flow")

    wait_until(lambda: all(one["lag"] == 0 for one in flow()["stages"]), WAIT_SECONDS, "no lag")
    assert flow()["trouble"] is None
    assert all("alpha" in one["owner"] for one in flow()["shards"])
    count = len(application.audit.duplicate)
    wait_until(
        lambda: len(server.get("/v1/duplicates?limit=100")["duplicates"]) == min(count, 100),
        WAIT_SECONDS,
        "the duplicates",
    )
    for one in server.get("/v1/duplicates?limit=3")["duplicates"]:
        (found,) = server.get(f"/v1/documents?id={one['id']}")["documents"]
        assert found["verdict"] == "duplicate"
        whole = server.get(f"/v1/documents?sequence={one['sequence']}")["documents"][0]
        assert (whole["id"], whole["source"]) == (one["id"], one["source"])
        assert whole["text"] == dict(TEXTS)[one["id"]]


@pytest.mark.slow
def test_a_server_tells_the_verdicts_that_workers_then_publish(
    launch: Launch, tmp_path: Path
) -> None:
    application = launch(partitions=2)
    application.start("alpha")
    published(application, 0, 150)
    answers = {}
    with serving(application.config, tmp_path) as server:
        paths = {ident: write(tmp_path, ident, text) for ident, text in TEXTS[150:]}
        wait_until(partial(caught_up, server, application, paths["d150"]), WAIT_SECONDS, "it")
        for ident, path in paths.items():
            answers[ident] = server.ask(path)["answers"][0]
            number = int(ident[1:])
            published(application, number, number + 1)
            wait_until(partial(caught_up, server, application, path), WAIT_SECONDS, "it")
        _shows(server, application)
        server.kill()
        server.start(*ANY_PORTS)
        # It is ready when little is left to read, and says how much.
        wait_until(partial(caught_up, server, application, paths["d150"]), WAIT_SECONDS, "it")
        said = server.ask(paths["d150"])
        assert said["behind"] == 0
        app = application.settings.app
        assert f'neardup_queued_messages{{app="{app}",part="fetched"}}' in server.metrics()
        assert said["answers"][0]["matches"][0]["similarity"] == 1.0
        server.signal(signal.SIGTERM)
        assert server.wait(WAIT_SECONDS) == 0
    verdicts = {
        json.loads(record.value or b"")["id"]: verdict_of(record)
        for record in (*application.audit.unique, *application.audit.duplicate)
    }
    for ident, answer in answers.items():
        told = tuple((one["id"], one["similarity"]) for one in answer["matches"])
        assert told == verdicts[ident].matches
    assert any(answer["matches"] for answer in answers.values())
    admin = application.kafka.admin()  # Held until the result is there.
    names = {one.group_id for one in admin.list_consumer_groups().result(WAIT_SECONDS).valid}
    assert application.topology.group("index") in names
    assert application.topology.group("serve") not in names


@pytest.mark.slow
def test_what_is_corrected_over_http_holds_for_workers_and_is_undone(
    launch: Launch, tmp_path: Path
) -> None:
    application = launch(partitions=2)
    application.start("alpha")
    song = "I love this song!!! It is the best thing that I have heard in all these years."
    audit = application.audit

    def feed(ident: str, published_by_then: int) -> None:
        application.feed(application.documents([(ident, song)]))
        audit.reach(published_by_then)

    with serving(application.config, tmp_path) as server:
        feed("d0", 1)
        wait_until(server.ready, WAIT_SECONDS, "the server to be ready")
        allowed = server.post("/v1/corrections", {"allow": {"of": {"text": song}}})

        def listed() -> list[str]:
            return [one["id"] for one in server.get("/v1/corrections")["corrections"]]

        wait_until(lambda: listed() == [allowed["id"]], WAIT_SECONDS, "the allowance")
        feed("d1", 2)
        server.post("/v1/corrections", {"withdraw": {"id": allowed["id"]}})
        wait_until(lambda: listed() == [], WAIT_SECONDS, "the withdrawal")
        feed("d2", 3)
        server.post("/v1/corrections", {"forget": {"id": "d0"}})
        note = erasure_name(b"d0").decode()
        wait_until(lambda: listed() == [note], WAIT_SECONDS, "the note on the erasure")

        def shown() -> int:
            return len(server.get("/v1/documents?id=d0")["documents"])

        wait_until(lambda: shown() == 0, WAIT_SECONDS, "d0 to be forgotten")
        server.post("/v1/corrections", {"restore": {"id": "d0"}})
        wait_until(lambda: shown() == 1, WAIT_SECONDS, "d0 to be published anew")
    named = [value for one in audit.unique for name, value in one.headers if name == ALLOWED_BY]
    assert named == [allowed["id"].encode()]
    assert json.loads(audit.duplicate[0].value or b"")["id"] == "d2"


@pytest.mark.slow
def test_a_server_with_other_settings_is_refused_with_the_difference(
    launch: Launch, tmp_path: Path
) -> None:
    application = launch()
    other = tmp_path / "other.toml"
    other.write_text(application.config.read_text() + "\n[similarity]\nthreshold = 0.6\n")
    with serving(other, tmp_path) as server:
        assert server.wait(WAIT_SECONDS) == 2
        assert "similarity.threshold" in server.current().splitlines()[-1]
        assert "0.6 here" in server.current().splitlines()[-1]
