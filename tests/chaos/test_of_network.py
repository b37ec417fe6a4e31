"""Faults of the network, as schedules name them."""

import pytest

from tests.faults.of_network import EndTxn, Fetch, Heartbeat, Produce, TxnOffsetCommit


@pytest.mark.parametrize("fault", [EndTxn, Fetch, Heartbeat, Produce, TxnOffsetCommit])
def test_whatever_is_drawn_can_be_done(
    fault: type[EndTxn | Fetch | Heartbeat | Produce | TxnOffsetCommit],
) -> None:
    targets = fault.targets([])
    assert len(targets) == 7
    for target in targets:
        rule = fault.rule(target)
        assert f"{rule.act} {rule.of}" == target
