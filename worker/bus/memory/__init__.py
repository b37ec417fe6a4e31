"""The in-process log: Kafka's semantics without Kafka.

The demo, the offline command, and the tests that crash a stage at every step of a transaction
run on it.
"""

from __future__ import annotations
