"""Settings of every generation that there ever was are known, whatever is done in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import pytest

from tests.support.plans import taken_over
from tests.worker.admin.fake import FakeCluster
from worker.admin.checks import inspect, topic_problems
from worker.admin.cluster import TopicState
from worker.admin.layout_log import refuse_others
from worker.admin.plan import DEFAULT_MAX_BYTES
from worker.admin.plan import plan as topic_plans
from worker.admin.reindex.checking import changed_rules, numbered
from worker.admin.reindex.in_use import in_use, judged_by, other_rules
from worker.admin.reindex.topics import delete_left
from worker.bus import TopicPartition
from worker.generations.generation import Generation, Signing
from worker.generations.log import PLAN_KEY, dump
from worker.generations.plan import Plan, WrongState
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings

Given = frozenset[tuple[str, object]]

_DEFAULTS: dict[str, object] = {
    "index.shards": 2,
    "similarity.threshold": 0.8,
    "similarity.shingle": "char",
}
_LENGTH = 5


def _file(given: dict[str, object]) -> Given:
    return frozenset({**_DEFAULTS, **given}.items())


_LOADED: dict[Given, Settings] = {}


def _loaded(file: Given) -> Settings:
    if file not in _LOADED:
        _LOADED[file] = load(None, {"app": "a", **dict(file)})
    return _LOADED[file]


BASE = _loaded(_file({}))
SIGNING = Signing.of(BASE.parameters())


class World(NamedTuple):
    """An application between two commands.

    Attributes:
        plan: what workers run.
        files: of each generation that there has been, the settings that say its rules.
        file: the settings as they are.
        running: those with which a worker was started.
    """

    plan: Plan
    files: tuple[Given, ...]
    file: Given
    running: Given


def _begin(world: World, setting: str, values: tuple[object, object]) -> World:
    """Have another value of a setting than in the generation that is in use."""
    in_use = dict(world.files[world.plan.current.number])
    in_use[setting] = values[in_use[setting] == values[0]]
    wanted = _loaded(_file(in_use))
    if setting == "similarity.shingle":
        following = numbered(world.plan, Generation.fingerprinted(wanted), 0)
    else:
        following = changed_rules(
            world.plan.current, shards=wanted.index.shards, threshold=wanted.similarity.threshold
        )
    try:
        plan = world.plan.start_build(following, SIGNING)
    except WrongState:
        return world
    return world._replace(plan=plan, files=(*world.files, _file(in_use)))


def _finish(world: World) -> World:
    plan = world.plan
    if plan.state == "idle":
        return world
    plan = plan.seal() if plan.rewriting else plan
    return world._replace(plan=plan.hand_over().finish())


def _abort(world: World) -> World:
    return world if world.plan.state == "idle" else world._replace(plan=world.plan.abort())


def _clean(world: World) -> World:
    plan = world.plan
    return world._replace(plan=plan.clean(plan.left)) if plan.left else world


ACTS: dict[str, Callable[[World], World]] = {
    "another threshold": lambda world: _begin(world, "similarity.threshold", (0.8, 0.9)),
    "other shards": lambda world: _begin(world, "index.shards", (2, 3)),
    "new fingerprints": lambda world: _begin(world, "similarity.shingle", ("char", "word")),
    "take over": _finish,
    "abort": _abort,
    "clean": _clean,
    "settings": lambda world: world._replace(file=world.files[world.plan.current.number]),
    "restart": lambda world: world._replace(running=world.file),
}


def _worlds(length: int) -> dict[World, tuple[str, ...]]:
    """Return all that come of so many acts at most, with the acts that lead there."""
    first = World(Plan.of(BASE), (_file({}),), _file({}), _file({}))
    found: dict[World, tuple[str, ...]] = {first: ()}
    edge = [first]
    for _ in range(length):
        following = []
        for world in edge:
            for name, act in ACTS.items():
                after = act(world)
                if after not in found:
                    found[after] = (*found[world], name)
                    following.append(after)
        edge = following
    return found


def _cluster(plan: Plan) -> FakeCluster:
    """Return a cluster on which all generations were created, and those that were cleaned are gone.

    All is where a worker that has judged everything leaves it.
    """
    cluster = FakeCluster(BASE)
    base = cluster.topology
    cluster.records["a.layout"][PLAN_KEY] = dump(plan)
    for one in (*plan.cleaned, *plan.left, *plan.generations()):
        topology = one.topology(base)
        for topic in topic_plans(one.settings(BASE), topology, DEFAULT_MAX_BYTES):
            state = TopicState(
                topic.partitions, 3, {**topic.settings(), "min.insync.replicas": "2"}
            )
            cluster.states.setdefault(topic.name, state)
        cluster.ends[topology.order] = (0, 9)
        for stage in ("fingerprint", "index", "route"):
            cluster.offsets.setdefault(topology.group(stage), {}).update(
                {
                    TopicPartition(topic, number): 9 if topic == topology.seats else 0
                    for topic, count in topology.inputs(stage).items()
                    for number in range(count)
                }
            )
    gone = msgspec.structs.replace(plan, left=plan.cleaned)
    list(delete_left(cluster.as_cluster(), gone, base))
    return cluster


def _errors(cluster: FakeCluster, settings: Settings) -> list[str]:
    found = inspect(cluster.as_cluster(), settings).problems
    found = [*found, *topic_problems(cluster.as_cluster(), settings)]
    return [f"{one}; {one.fix}" for one in found if one.severity == "error"]


@pytest.fixture(scope="module")
def worlds() -> dict[World, tuple[str, ...]]:
    return _worlds(_LENGTH)


def test_settings_of_any_generation_are_known_after_any_acts(
    worlds: dict[World, tuple[str, ...]],
) -> None:
    """A worker runs with them, and starts with them, for ever."""
    checked = set()
    for world, acts in worlds.items():
        cluster = None
        for file in {*world.files, world.file, world.running}:
            if (world.plan, file) in checked:
                continue
            checked.add((world.plan, file))
            cluster = cluster or _cluster(world.plan)
            assert _errors(cluster, _loaded(file)) == [], (acts, sorted(file, key=str))
            refuse_others(cluster.as_cluster(), _loaded(file))
    assert len(checked) > 500


@pytest.mark.parametrize(
    ("given", "way_on"),
    [
        ({"similarity.threshold": 0.6}, "`neardup reindex --threshold 0.6`"),
        ({"index.shards": 5}, "`neardup reindex --shards 5`"),
        ({"similarity.shingle_size": 7}, "`neardup reindex --from-documents`"),
        ({"similarity.seed": "a secret of our own"}, "put the similarity.seed back"),
    ],
)
def test_others_are_refused_with_what_mends_it_after_any_acts(
    worlds: dict[World, tuple[str, ...]], given: dict[str, object], way_on: str
) -> None:
    stranger = _loaded(_file(given))
    [setting] = given
    for plan in {world.plan for world in worlds}:
        cluster = _cluster(plan)
        errors = _errors(cluster, stranger)
        assert any(setting in one and way_on in one for one in errors), plan
        assert not any("missing" in one for one in errors), plan
        with pytest.raises(ConfigurationError) as refused:
            refuse_others(cluster.as_cluster(), stranger)
        assert setting in str(refused.value)
        assert "can't be changed once it has begun" in str(refused.value)


def test_what_was_cleaned_is_kept_once_for_each_set_of_rules() -> None:
    plan = Plan.of(BASE)
    for number in range(2_000):
        following = changed_rules(plan.current, shards=2 + number % 3)
        plan = taken_over(plan, following)
        plan = plan.clean(plan.left)
    assert len(plan.cleaned) == 3
    assert plan.left == ()


def test_what_was_left_since_topics_were_deleted_is_still_left() -> None:
    plan = taken_over(Plan.of(BASE), Generation.of(BASE))
    deleted = plan.left
    later = taken_over(plan, plan.current)
    changed = later.clean(deleted)
    assert (changed.left, changed.cleaned) == ((plan.current,), deleted)
    with pytest.raises(WrongState):
        changed.clean(deleted)


DAYS = load(None, {"app": "a", "index.window": "9d"})
WORDS = load(None, {"app": "a", "similarity.shingle": "word", "similarity.threshold": 0.7})
FIRST = Plan.of(DAYS).signed(Signing.of(DAYS.parameters()))
ANEW = numbered(FIRST, Generation.fingerprinted(WORDS), 100)
TARGET = ANEW.topology(DAYS.topology(2))


class TestAfterOne:
    PLAN = taken_over(FIRST, ANEW)

    @pytest.mark.parametrize("settings", [DAYS, WORDS])
    def test_those_from_before_and_for_after_are_known(self, settings: Settings) -> None:
        assert list(other_rules(self.PLAN, settings)) == []
        cluster = FakeCluster(DAYS)
        cluster.records["a.layout"][PLAN_KEY] = dump(self.PLAN)
        plan = in_use(cluster.as_cluster(), settings)
        assert plan.topology(settings, 2) == TARGET
        assert plan.settings(settings).parameters() == WORDS.parameters()

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"threshold": 0.7}, "similarity.shingle"),
            ({"shingle": "word"}, "similarity.threshold"),
            ({"shingle": "word", "threshold": 0.7, "casefold": False}, "similarity.casefold"),
            (
                {"shingle": "word", "threshold": 0.7, "slots": 200, "bands": 40, "rows": 5},
                "similarity.slots",
            ),
        ],
    )
    def test_a_mixture_is_another_one(self, given: dict[str, object], named: str) -> None:
        settings = load(None, {"app": "a"} | {f"similarity.{k}": v for k, v in given.items()})
        assert named in {one.name for one in other_rules(self.PLAN, settings)}

    def test_sizes_that_follow_from_other_settings_are_not_asked_for(self) -> None:
        lower = msgspec.structs.replace(FIRST.current, number=1, threshold=0.9)
        plan = taken_over(FIRST, lower)
        later = load(None, {"app": "a", "index.window": "9d", "similarity.threshold": 0.9})
        assert later.parameters().bands != lower.bands
        assert list(other_rules(plan, later)) == []


def settings_of(**given: object) -> Settings:
    settings: Settings = load(
        None, {"app": "a", **{k.replace("__", "."): v for k, v in given.items()}}
    )
    return settings


def test_the_settings_of_the_workers_are_those_given() -> None:
    cluster = FakeCluster(settings_of()).as_cluster()
    used, rules, others = judged_by(cluster, settings_of())
    assert (used.parameters(), rules, others) == (settings_of().parameters(), None, [])


@pytest.mark.parametrize("threshold", [0.8, 0.7, 0.5])
def test_after_a_reindex_the_rules_are_those_in_use(threshold: float) -> None:
    """Whatever the settings say that were given: those of the beginning, or of nobody."""
    begun = settings_of(similarity__threshold=0.7)
    cluster = FakeCluster(begun)
    following = msgspec.structs.replace(Generation.of(begun), threshold=0.95)
    building = Plan.of(begun).start_build(following)
    given = settings_of(similarity__threshold=threshold)

    def threshold_and_whose(plan: Plan) -> tuple[float, str | None]:
        cluster.records["a.layout"][PLAN_KEY] = dump(plan)
        used = judged_by(cluster.as_cluster(), given)
        return used.settings.parameters().threshold, used.rules

    over = building.hand_over()
    assert over is not None
    assert threshold_and_whose(building) == (0.7, "generation 0 of the index, in use now")
    for plan in (over, over.finish()):
        assert threshold_and_whose(plan) == (0.95, "generation 1 of the index, in use now")


def test_what_the_application_recorded_counts_whatever_is_given() -> None:
    own = {
        "similarity__preset": "news",
        "similarity__containment": 0.9,
        "similarity__shingle": "word",
    }
    begun = settings_of(**own)
    used, whose, others = judged_by(FakeCluster(begun).as_cluster(), settings_of())
    assert used.parameters() == begun.parameters()
    assert whose == "those that a has recorded; the settings given here differ"
    assert others == []
    used, *_ = judged_by(FakeCluster(settings_of()).as_cluster(), begun)
    assert used.parameters() == settings_of().parameters()


def test_what_can_not_be_taken_over_is_named() -> None:
    begun = settings_of(
        similarity__seed="a secret of our own, of 32 bytes",
        documents__text_fields=["title", "body"],
        documents__time_field="at",
        topics__unique="elsewhere",
    )
    _, _, others = judged_by(FakeCluster(begun).as_cluster(), settings_of())
    assert [one.name for one in others] == ["similarity.seed (its digest)", "documents.text_fields"]
