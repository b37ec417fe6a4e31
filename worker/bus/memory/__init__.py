"""The in-process log: Kafka's semantics without Kafka.

The demo, the offline command, and the tests that crash a stage at every step of a transaction
run on it.
"""

from __future__ import annotations

from worker.bus.memory.bus import MemoryBus
from worker.bus.memory.faults import Faults, Step, Torn
from worker.bus.memory.group import assign_ranges
from worker.bus.memory.member import MemoryMember
from worker.bus.memory.segments import Retention
from worker.bus.memory.topics import murmur2, partition_for
from worker.bus.memory.transaction import Transaction

__all__ = [
    "Faults",
    "MemoryBus",
    "MemoryMember",
    "Retention",
    "Step",
    "Torn",
    "Transaction",
    "assign_ranges",
    "murmur2",
    "partition_for",
]
