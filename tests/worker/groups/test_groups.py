"""Groups against those that are computed from all published verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.worker.groups.naive import NaiveGroups, View, components
from tests.worker.groups.parts import Died, Followed, stream
from worker.corrections.request import Allow

HOUR = 3_600_000
WINDOW = 6 * HOUR
TIMED: dict[str, dict[str, Any]] = {
    "documents": {"time_field": "t"},
    "index": {"window": "6h", "flush_documents": 1},
}


def cut(documents: Sequence[Mapping[str, Any]], chance: Random) -> list[list[Mapping[str, Any]]]:
    """Return documents in frames of a few each."""
    frames, left = [], [*documents]
    while left:
        size = chance.randint(1, 6)
        frames.append(left[:size])
        left = left[size:]
    return frames


def ids(found: Sequence[View]) -> list[list[str]]:
    return sorted(sorted(ident for _, ident, _ in view.members) for view in found)


@pytest.mark.parametrize(("seed", "shards"), [(1, 1), (2, 2), (3, 5)])
def test_groups_are_the_connected_components_of_all_matches(
    tmp_path: Path, seed: int, shards: int
) -> None:
    chance = Random(seed)
    with Followed(tmp_path, index={"shards": shards}) as site:
        for frame in cut(list(stream(chance, 120)), chance):
            site.frame(frame)
            if chance.random() < 0.3:
                site.catch_up()
        site.catch_up()
        published = site.published()
        wanted = components(published)
        assert ids(site.views()) == wanted
        assert any(len(one) > 20 for one in wanted)
        assert len(wanted) > 1
        numbers = {one.id: one.sequence for one in published}
        assert [view.name for view in site.views()] == sorted(
            min(numbers[ident] for ident in one) for one in wanted
        )


def test_a_document_joins_two_groups(tmp_path: Path) -> None:
    both = " ".join(f"word{number}" for number in range(60))
    left = both + " " + " ".join(f"left{number}" for number in range(14))
    right = " ".join(f"right{number}" for number in range(14)) + " " + both
    with Followed(tmp_path, similarity={"threshold": 0.74}) as site:
        texts = [left, left, right, right, right, both]
        for count, text in enumerate(texts[:5]):
            site.frame([{"id": f"d{count}", "text": text}])
        site.catch_up()
        assert ids(site.views()) == [["d0", "d1"], ["d2", "d3", "d4"]]
        site.frame([{"id": "d5", "text": both}])
        site.catch_up()
        (view,) = site.views()
        assert [ident for _, ident, _ in view.members] == ["d0", "d1", "d2", "d3", "d4", "d5"]
        names = {sequence: ident for sequence, ident, _ in view.members}
        assert names[view.name] == "d0"  # The larger group absorbed the older one.
        absorbed = site.following.groups(lambda reader: reader.named(view.members[2][0]))
        assert absorbed is not None
        assert absorbed.group.name == view.name


@pytest.mark.parametrize("shards", [1, 3])
def test_what_is_allowed_joins_no_group(tmp_path: Path, shards: int) -> None:
    slogan = "a slogan that everybody has in a mail, and that is no sign of any campaign at all"
    with Followed(tmp_path, index={"shards": shards}) as site:
        site.frame([{"id": f"d{number}", "text": slogan} for number in range(3)])
        site.correct(Allow("slogan", slogan))
        site.frame([{"id": f"d{number}", "text": slogan} for number in range(3, 6)])
        site.catch_up()
        assert ids(site.views()) == components(site.published()) == [["d0", "d1", "d2"]]
        (allowance,) = site.following.corrections().allowances
        assert allowance.id == b"slogan"


def dated(documents: Sequence[Mapping[str, Any]], chance: Random) -> list[dict[str, Any]]:
    """Return documents with times that go on, some late, some early."""
    time = 1_700_000_000_000
    found = []
    for one in documents:
        time += chance.choice([0, HOUR // 60, HOUR // 10, HOUR])
        own = time + chance.choice([0, 0, 0, -HOUR, -40 * HOUR, HOUR, 4 * HOUR, 900 * HOUR])
        found.append({**one, "t": own})
    return found


def naive(site: Followed, frames: Sequence[Sequence[Mapping[str, Any]]]) -> list[View]:
    """Return the groups of what has been published."""
    groups = NaiveGroups(site.rules, WINDOW)
    verdicts = {one.id: one for one in site.published()}
    allowed = 1_700_000_000_000 + site.settings.index.future_allowance_ms
    for frame in frames:
        found = [verdicts[str(one["id"])] for one in frame]
        groups.frame([one._replace(time=min(one.time, allowed)) for one in found])
    return groups.views()


@pytest.mark.parametrize(("seed", "shards"), [(4, 1), (5, 2), (6, 3)])
def test_members_leave_when_their_time_is_over(tmp_path: Path, seed: int, shards: int) -> None:
    chance = Random(seed)
    sections = {**TIMED, "index": {**TIMED["index"], "shards": shards}}
    frames = cut(past(dated(list(stream(chance, 220)), chance)), chance)
    with Followed(tmp_path, **sections) as site:
        for count, frame in enumerate(frames):
            site.frame(frame)
            if chance.random() < 0.3:
                site.catch_up()
                assert site.views() == naive(site, frames[: count + 1])
        site.catch_up()
        found = site.views()
        assert found == naive(site, frames)
        everything = [ident for one in components(site.published()) for ident in one]
        assert sum(view.size for view in found) < len(everything)


def past(documents: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return documents long before the time of the log, which cuts off later ones."""
    return [{**one, "t": one["t"] - 4_000 * HOUR} for one in documents]


def test_nothing_of_a_forgotten_document_remains(tmp_path: Path) -> None:
    chance = Random(7)
    documents = [{**one, "id": chance.randbytes(16).hex()} for one in stream(chance, 100)]
    with Followed(tmp_path, index={"shards": 2, "erasure_seconds": 60}) as site:
        for frame in cut(documents[:60], chance):
            site.frame(frame)
        site.catch_up()
        site.restart()  # So they are in files that later changes don't touch.
        site.catch_up()
        gone = []
        for frame in cut(documents[60:], chance):
            gone += [chance.choice(documents[:60])["id"], frame[0]["id"]]
            site.frame([*frame, *({"id": ident, "forget": True} for ident in gone[-2:])])
        site.catch_up()
        wanted = components(site.published(), gone)
        assert ids(site.views()) == wanted
        site.following.close()
        assert any(found_in(site, ident) for ident in gone)
        site.restart()  # What was not erased before is erased at once.
        site.catch_up()
        assert ids(site.views()) == wanted
        site.following.close()
        assert not any(found_in(site, ident) for ident in gone)
        assert any(found_in(site, ident) for one in wanted for ident in one)


def found_in(site: Followed, ident: str) -> bool:
    """Return whether a file of the groups has an id. What LZ4 finds twice, it writes once."""
    files = (path.read_bytes() for path in (site.state / "groups").iterdir())
    return any(ident.encode() in file for file in files)


@pytest.mark.parametrize("seed", range(4))
def test_a_follower_that_is_killed_at_any_write_makes_the_same_groups(
    tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    frames = cut(past(dated(list(stream(chance, 90)), chance)), chance)
    kills = 0
    with Followed(tmp_path, **TIMED) as site:
        for count, frame in enumerate(frames):
            site.frame(frame)
            if count % 5 == 4:
                site.frame([{"id": "nobody", "forget": True}])
            site.killer.left = chance.randrange(24)
            try:
                site.catch_up()
            except Died:
                kills += 1
                site.kill()
        site.killer.left = None
        site.catch_up()
        assert site.views() == naive(site, frames)
    assert kills > 10


def test_a_follower_is_killed_at_every_single_write(tmp_path: Path) -> None:
    chance = Random(11)
    documents = list(stream(chance, 12))

    def run(directory: Path, at: int | None) -> tuple[list[View], int]:
        with Followed(directory, index={"flush_documents": 1}) as site:
            site.killer.left = at
            for half in (documents[:7], documents[7:]):
                site.frame(half)
                try:
                    site.catch_up()
                except Died:
                    site.kill()
            site.catch_up()
            return site.views(), site.killer.passed

    wanted, points = run(tmp_path / "whole", None)
    assert wanted
    for at in range(points):
        assert run(tmp_path / f"killed-{at}", at)[0] == wanted


@pytest.mark.parametrize(
    ("same_id", "members"),
    [
        ("duplicate", ["a", "b", "b", "c"]),
        ("replace", ["a", "c", "b"]),
        ("ignore", ["a", "b", "c"]),
    ],
)
def test_an_id_that_comes_again_is_a_member_once_unless_it_counts_anew(
    tmp_path: Path, same_id: str, members: list[str]
) -> None:
    with Followed(tmp_path, index={"same_id": same_id}) as site:
        for ident in ("a", "b", "c", "b") if same_id == "replace" else ("a", "b", "b", "c"):
            site.frame([{"id": ident, "text": "one text for all of them, which is long enough"}])
        site.catch_up()
        (view,) = site.views()
        assert [ident for _, ident, _ in view.members] == members


def test_groups_that_are_lost_are_made_again_from_the_log(tmp_path: Path) -> None:
    chance = Random(13)
    with Followed(tmp_path, index={"flush_documents": 1}) as site:
        site.frame(list(stream(chance, 40)))
        site.catch_up()
        wanted = site.views()
        site.following.close()
        for table in (site.state / "groups").iterdir():
            table.write_bytes(b"x" * 100)
        site.restart()
        site.catch_up()
        assert site.views() == wanted
        other = site.settings.serve.model_copy(update={"groups_window": "1h"})
        site.restart(site.settings.model_copy(update={"serve": other}))
        site.catch_up()
        assert site.views() == wanted


def test_groups_begin_where_the_log_does_not_reach_back(tmp_path: Path) -> None:
    chance = Random(17)
    documents = list(stream(chance, 80))
    with Followed(tmp_path) as site:
        site.frame(documents[:40])
        site.catch_up()
        site.following.close()
        (site.state / "groups").rename(tmp_path / "away")
        site.bus.trim(*site.topology.order, 1)
        site.frame(documents[40:])
        site.restart()
        site.catch_up()
        later = [one for one in site.published() if int(one.id[1:]) >= 40]
        assert ids(site.views()) == components(later)
        assert site.following.groups(lambda reader: reader.progress.begun) > 0
        times = {ident: time for view in site.views() for _, ident, time in view.members}
        assert all((time is None) == (int(ident[1:]) < 40) for ident, time in times.items())


def test_groups_go_on_if_the_log_begins_where_they_are(tmp_path: Path) -> None:
    documents = list(stream(Random(19), 80))
    with Followed(tmp_path, index={"flush_documents": 1}) as site:
        site.frame(documents[:40])
        site.catch_up()
        site.following.close()
        site.bus.trim(*site.topology.order, 1)
        site.frame(documents[40:])
        site.restart()
        site.catch_up()
        assert ids(site.views()) == components(site.published())
        assert site.following.groups(lambda reader: reader.progress.begun) == 0


def test_no_groups_are_kept_if_nobody_wants_them(tmp_path: Path) -> None:
    with Followed(tmp_path, serve={"groups": False}) as site:
        site.frame(list(stream(Random(1), 10)))
        site.catch_up()
        assert not (site.state / "groups").exists()
