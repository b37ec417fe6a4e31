"""Fixtures: clusters behind proxies."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from chaos.proxy import Proxies
from chaos.retention import CLEANING
from chaos.running import Ground
from localkafka.broker import KafkaCluster
from tests.support.clusters import EXTERNAL


@contextmanager
def behind_proxies(nodes: int, settings: Mapping[str, str] | None = None) -> Iterator[Ground]:
    """Start a cluster and its proxies; ``settings`` are those of the brokers."""
    if EXTERNAL:
        pytest.skip("needs a cluster to break, and NEARDUP_TEST_KAFKA names one to leave alone")
    with ExitStack() as stack:
        config: dict[str, str | int] = {**CLEANING, **(settings or {})}
        cluster = stack.enter_context(KafkaCluster(nodes, config, proxied=True))
        yield cluster, stack.enter_context(Proxies(cluster.proxied))


@pytest.fixture(scope="module")
def one_node() -> Iterator[Ground]:
    """Yield one node behind a proxy."""
    with behind_proxies(1) as ground:
        yield ground


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[Ground]:
    """Yield three nodes behind proxies."""
    with behind_proxies(3) as ground:
        yield ground
