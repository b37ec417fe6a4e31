"""A redrive whose connections fail goes on from what was committed, and sends nothing twice."""

from collections import Counter
from collections.abc import Iterator

import pytest

from chaos.rule import Act, Of, Rule
from chaos.running import Ground
from chaos.wire import Api
from localkafka.broker import Kafka
from tests.chaos.conftest import behind_proxies
from tests.support.redriving import DOUBTS, Redriving, numbered

pytestmark = [pytest.mark.kafka, pytest.mark.slow(ci=False)]

LATER_SECONDS = 6.0
PROMPT = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
"""Brokers look for transactions that have timed out every 10 s by default. Whether they find one
before its run gives it up must not be a matter of luck."""


@pytest.fixture(scope="module")
def prompt_node() -> Iterator[Ground]:
    """Yield one node behind a proxy that ends a transaction as soon as it has timed out."""
    with behind_proxies(1, PROMPT) as ground:
        yield ground


@pytest.fixture
def app(prompt_node: Ground, app_id: str) -> Iterator[Redriving]:
    """Yield an application behind the proxy; it is made, and looked at, past it."""
    cluster, _ = prompt_node
    redriving = Redriving(cluster, app_id)
    yield redriving
    redriving.close()


@pytest.mark.parametrize(
    ("api", "fate"),
    [
        (Api.END_TXN, ("cut", "request")),
        (Api.END_TXN, ("cut", "response")),
        (Api.END_TXN, ("late", "request")),
        (Api.END_TXN, ("drop", "response")),
        (Api.PRODUCE, ("cut", "response")),
        (Api.PRODUCE, ("drop", "response")),
    ],
    ids=[
        "end-cut-before",
        "end-cut-after",
        "end-late",
        "end-unanswered",
        "produce-cut-after",
        "produce-unanswered",
    ],
)
def test_after_a_lost_answer_the_run_goes_on_from_the_truth(
    prompt_node: Ground, app: Redriving, api: Api, fate: tuple[Act, Of]
) -> None:
    cluster, proxies = prompt_node
    values = numbered(1_000)
    app.reject(values)
    assert app.run("--limit 100").startswith("100 sent again")
    client = f"neardup-{app.app}.redrive"
    rule = Rule(frozenset({api}), *fate, seconds=LATER_SECONDS, limit=1, client=client)
    app.kafka = Kafka(cluster.proxied_bootstrap)
    with proxies.rule(rule):
        said = app.logged()
    assert rule.hits == 1
    assert any(doubt in said for doubt in DOUBTS)
    assert "900 sent again" in said
    app.kafka = cluster
    assert app.run() == "0 sent again\n"
    assert app.sent() == Counter(dict.fromkeys(values, 1))
