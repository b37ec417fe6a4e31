"""Which generations of the index workers run, and with which settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.support.plans import taken_over
from worker.generations.generation import Generation
from worker.generations.modes import IN_USE, Mode, Part, parts
from worker.generations.plan import Plan, State, WrongState
from worker.settings.loading import load
from worker.topology import STAGES

SETTINGS = load(None, {"app": "a", "index.shards": 2})
FIRST = Generation.of(SETTINGS)
BASE = SETTINGS.topology(3)
SECOND = msgspec.structs.replace(FIRST, number=1, shards=5, threshold=0.9, window="30d")


def test_a_generation_is_what_its_settings_say() -> None:
    changed = SECOND.settings(SETTINGS)
    assert Generation.of(changed, 1) == SECOND
    assert (changed.index.window_ms, changed.absorb) == (30 * 86_400_000, FIRST.absorb)


def test_bands_are_those_of_the_fingerprints_whatever_the_threshold() -> None:
    own, other = SETTINGS.parameters(), SECOND.settings(SETTINGS).parameters()
    assert (own.slots, own.bands, own.rows) == (other.slots, other.bands, other.rows)
    chosen = load(None, {"similarity.threshold": 0.9}).parameters()
    assert (chosen.bands, chosen.rows) != (own.bands, own.rows)


def test_a_reindex_goes_from_one_generation_to_the_next() -> None:
    begun = Plan.of(SETTINGS).start_build(SECOND)
    assert (begun.generations(), begun.gone()) == ((FIRST, SECOND), [])
    ended = begun.hand_over().finish()
    assert (ended.current, ended.following, ended.left) == (SECOND, None, (FIRST,))
    again = ended.start_build(FIRST)
    assert again.following == msgspec.structs.replace(FIRST, number=2)
    given_up = again.abort()
    assert (given_up.current, given_up.following, given_up.used) == (SECOND, None, 2)
    assert given_up.gone() == msgspec.structs.replace(given_up, left=()).gone() == [0, 2]
    assert given_up.start_build(FIRST).used == 3


def test_a_worker_runs_the_index_of_both_and_routes_from_both() -> None:
    plan = Plan.of(SETTINGS).start_build(SECOND)
    later = SECOND.topology(BASE)
    found = parts(STAGES, plan, BASE)
    assert found == [
        Part("fingerprint", BASE),
        Part("index", BASE, IN_USE, FIRST),
        Part("index", later, Mode("build"), SECOND),
        Part("route", BASE, Mode("use", following=later), FIRST),
    ]
    assert [part.name for part in found] == ["fingerprint", "index", "index-g1", "route"]
    assert [part.mode.ahead for part in found] == [False, False, True, False]


def test_an_index_that_was_built_is_then_in_use() -> None:
    plan = Plan.of(SETTINGS).start_build(SECOND)
    (_, built), (used,) = (parts(["index"], one, BASE) for one in (plan, plan.hand_over().finish()))
    assert used == built._replace(mode=IN_USE)
    assert used.name == built.name == "index-g1"


@pytest.mark.parametrize(("generation", "name"), [(FIRST, ""), (SECOND, "g1")])
def test_stores_of_generations_lie_apart(generation: Generation, name: str) -> None:
    assert generation.directory(Path("state")) == Path("state") / name


def test_the_topology_of_the_generation_in_use_follows_from_any_settings() -> None:
    plan = taken_over(Plan.of(SETTINGS), SECOND)
    topology = plan.topology(load(None, {"app": "a", "index.shards": 5}), 3)
    assert topology == SECOND.topology(SETTINGS.topology(3))
    assert topology.layout.id == SETTINGS.topology(3).layout.id


def test_a_generation_names_its_containment_only_if_it_has_one() -> None:
    """So plans stay readable for workers that know none."""
    assert b"containment" not in msgspec.json.encode(FIRST)
    settings = load(None, {"app": "a", "similarity.containment": 0.9})
    own = Generation.of(settings)
    assert msgspec.json.decode(msgspec.json.encode(own), type=Generation) == own
    without = msgspec.structs.replace(own, number=1, containment=None)
    assert without.settings(settings).rules().containment is None
    assert without.topology(settings.topology(2)).layout.parameters.containment is None
    assert own.settings(load(None, {"app": "a"})).parameters() == settings.parameters()


WORDS = load(
    None,
    {"app": "a", "index.shards": 3, "similarity.shingle": "word", "similarity.shingle_size": 2},
)
ANEW = msgspec.structs.replace(
    Generation.fingerprinted(WORDS), number=1, log=1, numbered_from=1 << 31
)


def test_a_generation_with_a_log_of_its_own_has_other_names_and_another_layout() -> None:
    plain, own = SECOND.topology(BASE), ANEW.topology(BASE)
    assert (plain.fingerprints, plain.group("fingerprint")) == ("a.fingerprints", "a.fingerprint")
    assert own.fingerprints == "a.g1.fingerprints"
    assert own.group("fingerprint") == "a.g1.fingerprint"
    assert own.group("refingerprint") == "a.g1.refingerprint"
    assert (own.documents, own.group("route")) == (plain.documents, plain.group("route"))
    assert plain.layout.id == BASE.layout.id != own.layout.id
    assert own.layout.parameters == WORDS.parameters()
    assert own.layout.numbered_from == 1 << 31


def test_all_that_read_a_log_agree_on_its_layout_and_on_what_makes_it() -> None:
    later = msgspec.structs.replace(
        ANEW, number=2, shards=7, threshold=0.9, absorb=0.97, window="9d", bucket_capacity=5
    )
    assert later.topology(BASE).layout.id == ANEW.topology(BASE).layout.id
    assert later.topology(BASE).fingerprints == ANEW.topology(BASE).fingerprints
    assert later.signer() == ANEW.signer()
    other = msgspec.structs.replace(ANEW, number=2, log=2)
    assert other.topology(BASE).layout.id != ANEW.topology(BASE).layout.id


def test_sizes_are_made_whatever_a_later_generation_looks_for() -> None:
    sized = load(None, {"app": "a", "similarity.containment": 0.9})
    one = msgspec.structs.replace(Generation.fingerprinted(sized), number=1, log=1)
    without = msgspec.structs.replace(one, number=2, containment=None)
    assert without.topology(BASE).layout.parameters.containment is None
    assert without.signer().topology(BASE).layout.parameters.containment is not None
    assert ANEW.signer().topology(BASE).layout.parameters.containment is None


def test_a_log_takes_over_from_another_step_by_step() -> None:
    plan = Plan.of(SETTINGS).start_build(ANEW)
    following = plan.following
    assert following is not None
    later = following.signer().topology(BASE)

    def signing(plan: Plan) -> list[Part]:
        return parts(["fingerprint"], plan, BASE)

    rewriting = Part("refingerprint", later, Mode("rewrite", source=BASE))
    waiting = Part("fingerprint", later, Mode("wait"))
    assert signing(plan) == [Part("fingerprint", BASE), rewriting, waiting]
    assert [part.mode.holds for part in signing(plan)] == [False, False, True]
    names = ["fingerprint", "refingerprint-g1", "fingerprint-g1"]
    assert [part.name for part in signing(plan)] == names
    closing = plan.seal()
    assert signing(closing)[0] == Part("fingerprint", BASE, Mode("seal"))
    assert signing(closing)[0].mode.holds
    begun = closing.hand_over().begin_log([4, 5])
    assert signing(begun)[2] == Part("fingerprint", later, Mode("begin", starts=(4, 5)))
    assert [part.mode.holds for part in signing(begun)] == [True, False, False]
    assert [part.mode.ahead for part in signing(begun)] == [False, True, True]
    done = begun.finish()
    assert signing(done) == [Part("fingerprint", later)]
    assert not signing(done)[0].mode.ahead
    plain = done.start_build(msgspec.structs.replace(following, shards=5))
    assert plain.following is not None
    assert (plain.following.number, plain.following.log, plain.rewriting) == (2, 1, False)
    assert signing(plain) == signing(done)
    anew = done.start_build(msgspec.structs.replace(following, log=2))
    assert anew.following is not None
    assert (anew.following.log, anew.rewriting) == (2, True)


def test_a_plan_says_how_the_first_fingerprints_were_made_once_settings_may_not() -> None:
    plan = Plan.of(SETTINGS).signed(Generation.fingerprinted(SETTINGS).signing)  # type: ignore[arg-type]
    done = taken_over(plan, ANEW)
    assert done.topology(SETTINGS, 3) == ANEW.topology(BASE)
    assert done.topology(WORDS, 3) == ANEW.topology(BASE)
    assert done.base_topology(WORDS, 3) == BASE
    again = done.signed(Generation.fingerprinted(WORDS).signing)  # type: ignore[arg-type]
    assert again == done


def test_a_plan_of_the_version_before_can_be_read_and_reads_a_plain_one() -> None:
    plan = Plan.of(SETTINGS).start_build(SECOND)
    known = {"base", "current", "following", "handed_over", "used", "left"}
    assert set(msgspec.to_builtins(plan)) <= known
    assert set(msgspec.to_builtins(plan.current)) <= {*FIRST.__struct_fields__[:9], "containment"}
    full = {"handed_over": False, "left": [], "following": None, "used": 0}
    earlier = {**full, **msgspec.to_builtins(Plan.of(SETTINGS))}
    assert msgspec.convert(earlier, Plan) == Plan.of(SETTINGS)


IDLE = Plan.of(SETTINGS)
BUILDING = IDLE.start_build(SECOND)
OVER = BUILDING.hand_over()
REWRITING = IDLE.start_build(ANEW)
SEALING = REWRITING.seal()
REWRITTEN = SEALING.hand_over()
LOG_BEGUN = REWRITTEN.begin_log([1, 2, 3])
PLANS = (IDLE, BUILDING, OVER, REWRITING, SEALING, REWRITTEN, LOG_BEGUN)
TRANSITIONS: dict[str, tuple[Callable[[Plan], Plan], dict[int, State]]] = {
    "start_build": (lambda plan: plan.start_build(SECOND), {0: "building"}),
    "seal": (Plan.seal, {3: "sealing"}),
    "hand_over": (Plan.hand_over, {1: "taking over", 4: "taking over"}),
    "another hand_over": (lambda plan: plan.hand_over(2), {}),
    "begin_log": (lambda plan: plan.begin_log([4, 5, 6]), {5: "taking over"}),
    "finish": (Plan.finish, {2: "idle", 5: "idle", 6: "idle"}),
    "abort": (Plan.abort, {1: "idle", 3: "idle"}),
    "widen": (lambda plan: plan.widen(3, 5), {0: "idle"}),
    "widen others": (lambda plan: plan.widen(3, 5).widen(3, 6), {}),
    "clean": (lambda plan: plan.clean([SECOND]), {}),
}


@pytest.mark.parametrize("name", TRANSITIONS)
def test_a_transition_goes_from_its_states_alone(name: str) -> None:
    transition, goes = TRANSITIONS[name]
    for number, plan in enumerate(PLANS):
        if number in goes:
            assert transition(plan).state == goes[number]
        else:
            with pytest.raises(WrongState):
                transition(plan)
