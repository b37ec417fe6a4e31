"""``neardup dedupe --same-id``: a document whose id came before, in this run or an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.command_line import dedupe, jsonl, neardup

TEXT = "The quick brown fox jumps over the lazy dog, again and again. "
OTHER = "A text that nothing else resembles, not even from a great distance. "
FIRST = [("a", TEXT), ("b", TEXT), ("a", OTHER)]
THEN = [("d", OTHER), ("c", TEXT)]


def verdicts(documents: list[tuple[str, str]], *more: str | Path) -> list[list[str]]:
    """Return the ids that each document matched."""
    lines = jsonl({"id": ident, "text": text} for ident, text in documents)
    return [
        [match["id"] for match in line.get("duplicate_of", ())]
        for line in dedupe(*more, stdin=lines)
    ]


@pytest.mark.parametrize("shards", [slow("1"), "3"])
@pytest.mark.parametrize(
    ("rule", "first", "then"),
    [
        slow((), [[], ["a"], []], [["a"], ["a"]]),
        (("--same-id", "replace"), [[], ["a"], []], [["a"], []]),
        (("--same-id", "ignore"), [[], ["a"], []], [[], ["a"]]),
    ],
)
def test_ids_repeat_within_a_run_and_from_run_to_run(
    tmp_path: Path, shards: str, rule: tuple[str, ...], first: list[list[str]],
    then: list[list[str]],
) -> None:  # fmt: skip
    options: tuple[str | Path, ...] = (*rule, "--shards", shards)
    assert verdicts([*FIRST, *THEN], *options) == [*first, *then]
    state = (*options, "--state", tmp_path / "state")
    assert verdicts(FIRST, *state) == first
    assert verdicts(THEN, *state) == then


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        slow("replace", b"same_id: it has ignore, the settings say replace"),
        ("forget", b"index.same_id"),
    ],
)
def test_a_rule_is_known_and_stays_that_of_the_state(
    tmp_path: Path, rule: str, said: bytes
) -> None:
    state = ("--state", tmp_path / "state")
    verdicts(FIRST, "--same-id", "ignore", *state)
    lines = jsonl([{"id": "a", "text": TEXT}])
    done = neardup("dedupe", "--same-id", rule, *state, stdin=lines)
    assert done.returncode == 2
    assert said in done.stderr.replace(b"\n", b" ")
    assert verdicts(THEN, "--same-id", "ignore", *state) == [[], ["a"]]
