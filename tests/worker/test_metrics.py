"""What metrics say of shards that don't answer yet, or are kept warm; and then no more."""

from __future__ import annotations

from worker.metrics import Metrics
from worker.stages import RestoreState


def test_a_restore_is_told_of_until_it_has_ended() -> None:
    metrics = Metrics()

    def sample(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    metrics.restoring({2: RestoreState(bytes_done=5, bytes_total=9, remaining=70)})
    assert sample("neardup_restore_bytes", shard="2", part="done") == 5
    assert sample("neardup_restore_bytes", shard="2", part="total") == 9
    assert sample("neardup_restore_remaining_records", shard="2") == 70
    metrics.restoring({})
    assert sample("neardup_restore_bytes", shard="2", part="done") is None
    assert sample("neardup_restore_remaining_records", shard="2") is None


def test_the_lag_of_shards_kept_warm() -> None:
    metrics = Metrics()
    metrics.standby({1: 30})
    metrics.standby({0: 4})
    lag = "neardup_standby_lag_records"
    assert metrics.registry.get_sample_value(lag, {"shard": "0"}) == 4
    assert metrics.registry.get_sample_value(lag, {"shard": "1"}) is None
