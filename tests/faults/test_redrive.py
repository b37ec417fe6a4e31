"""A redrive whose connections fail ends with a message, and the next one goes on from the truth."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.cli_kafka.redriving import Redriving, numbered
from tests.faults.rule import Act, Of, Rule
from tests.faults.running import Ground
from tests.faults.wire import Api
from tests.kafka.broker import Kafka

pytestmark = pytest.mark.kafka

LATER_SECONDS = 6.0
LOST = "an answer or a connection was lost"


@pytest.fixture
def app(one_node: Ground, app_id: str) -> Iterator[Redriving]:
    """Yield an application behind the proxy; it is made, and looked at, past it."""
    cluster, _ = one_node
    redriving = Redriving(cluster, app_id)
    yield redriving
    redriving.close()


@pytest.mark.parametrize(
    ("api", "fate", "said"),
    [
        (Api.END_TXN, ("cut", "request"), LOST),
        (Api.END_TXN, ("cut", "response"), LOST),
        (Api.END_TXN, ("late", "request"), LOST),
        (Api.END_TXN, ("drop", "response"), "more perhaps: another run knows"),
        (Api.PRODUCE, ("cut", "response"), LOST),
        (Api.PRODUCE, ("drop", "response"), LOST),
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
def test_a_lost_answer_ends_the_run_and_the_next_goes_on(
    one_node: Ground, app: Redriving, api: Api, fate: tuple[Act, Of], said: str
) -> None:
    cluster, proxies = one_node
    values = numbered(1_000)
    app.reject(values)
    assert app.run("--limit 100").startswith("100 sent again")
    client = f"neardup-{app.app}.redrive"
    rule = Rule(frozenset({api}), *fate, seconds=LATER_SECONDS, limit=1, client=client)
    app.kafka = Kafka(cluster.proxied_bootstrap)
    with proxies.rule(rule):
        ended = app.run(status=1)
    assert rule.hits == 1
    assert said in ended
    app.kafka = cluster
    assert "sent again" in app.run()
    assert app.run() == "0 sent again\n"
    assert app.sent() == Counter(dict.fromkeys(values, 1))
