"""A member that asks where to begin asks again if the answer is lost."""

import pytest

from chaos.rule import Rule
from chaos.running import Ground
from chaos.wire import Api
from localkafka.broker import wait_until
from worker.bus import TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

pytestmark = [pytest.mark.kafka, pytest.mark.slow(ci=False)]


def test_an_answer_that_is_lost_is_asked_for_again(one_node: Ground, app_id: str) -> None:
    cluster, proxies = one_node
    topic = cluster.create_topic(app_id)
    options = KafkaOptions(cluster.proxied_bootstrap, consumer={"socket.timeout.ms": 2_000})
    member = KafkaBus(options).join(app_id, [topic], "alpha")
    try:
        place = TopicPartition(topic, 0)
        wait_until(lambda: bool(member.poll(1, 1, 0.1).assignment), 30, "an assignment")
        rule = Rule(frozenset({Api.OFFSET_FETCH}), "drop", "response", client=app_id, limit=1)
        with proxies.rule(rule):
            assert member.committed([place]) == {place: None}
        assert rule.hits == 1
        rule = Rule(frozenset({Api.LIST_OFFSETS}), "drop", "response", client=app_id, limit=1)
        with proxies.rule(rule):
            assert member.watermarks(place) == (0, 0)
        assert rule.hits == 1
    finally:
        member.close()
