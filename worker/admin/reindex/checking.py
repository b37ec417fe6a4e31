"""The next generation: its rules and numbers, and whether it can be built from what is there."""

from __future__ import annotations

import msgspec

from lsh import SWITCHES, candidate_chance
from lsh.tuning import sought
from worker.admin.agreement import Facts, recorded
from worker.admin.cluster import Cluster
from worker.admin.plan import DEFAULT_MAX_BYTES
from worker.admin.plan import plan as topic_plans
from worker.generations.generation import Generation, Signing
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.judging import SimilaritySection
from worker.settings.model import Settings
from worker.settings.units import duration_ms
from worker.topology import Topology

_HEADROOM = 1 << 30
"""The offsets by which the earlier log may grow while the next one is built."""


def changed_rules(generation: Generation, **rules: object) -> Generation:
    """Return a generation with other rules.

    Without another value, ``absorb`` is raised to the threshold, as in the settings.
    """
    made = msgspec.structs.replace(generation, **rules)
    if "absorb" not in rules and made.absorb < made.threshold:
        made = msgspec.structs.replace(made, absorb=made.threshold)
    return made


def same_rules(one: Generation, other: Generation) -> bool:
    """Return whether two generations have the same rules, and fingerprints made the same way."""
    plain = {"number": 0, "log": 0, "numbered_from": 0}
    return msgspec.structs.replace(one, **plain) == msgspec.structs.replace(other, **plain)


def begun_with(cluster: Cluster, settings: Settings) -> tuple[Plan, Signing]:
    """Return as what an application began, and how its fingerprints were made.

    The settings only name it: they may be those of its next generation.

    Raises:
        ConfigurationError: it has not begun.
        BusError: the cluster doesn't answer.
    """
    named = settings.topology(1)
    _, counts = cluster.counts()
    facts = recorded(cluster, named) if named.layout_log in counts else None
    if facts is None:
        raise ConfigurationError(
            f"{named.app} has not begun: it gets the fingerprints of its settings"
        )
    base = generation_of(facts)
    return Plan(base, base), signing_of(facts)


def signing_of(facts: Facts) -> Signing:
    """Return what made the fingerprints with which an application began, as it recorded that."""
    given = {name: facts.get(f"similarity.{name}") for name in ("shingle", "shingle_size")}
    return msgspec.convert(
        {
            **given,
            "switches": [name for name in SWITCHES if facts.get(f"similarity.{name}")],
            "sized": facts.get("similarity.containment") is not None,
        },
        Signing,
    )


def generation_of(facts: Facts) -> Generation:
    """Return the generation with which an application began, as it recorded that."""
    similarity = ("threshold", "slots", "bands", "rows", "containment")
    given = {name: facts.get(f"similarity.{name}") for name in similarity}
    given |= {name: facts.get(f"index.{name}") for name in ("shards", "absorb", "bucket_capacity")}
    given |= {"number": 0, "window": facts.get("index.window", "none")}
    return msgspec.convert(given, Generation)


def numbered(plan: Plan, following: Generation, end: int) -> Generation:
    """Return a generation with a log of its own, and the numbers of its frames.

    ``end`` is the end of the log in use, whose frames must have lower numbers.
    """
    number = plan.used + 1
    first = plan.current.numbered_from + end + _HEADROOM
    return msgspec.structs.replace(following, number=number, log=number, numbered_from=first)


def numbers_follow(following: Generation, source: Topology, end: int) -> bool:
    """Return whether frames of a generation's log have higher numbers than those of another log."""
    return source.layout.numbered_from + end + _HEADROOM // 2 < following.numbered_from


class Checks:
    """Checks of what an application's next generation is to be."""

    def __init__(
        self, cluster: Cluster, settings: Settings, base_settings: Settings, base: Topology
    ) -> None:
        """Take the command's settings, and those and the topology of generation 0."""
        self._cluster = cluster
        self._settings = settings
        self._base_settings = base_settings
        self._base = base

    def check(self, plan: Plan, following: Generation) -> None:
        """Check that a generation can be built from the fingerprints.

        Raises:
            ConfigurationError: it can't; the message says why, and what to do.
            BusError: the cluster doesn't answer.
        """
        current = plan.current
        if following == current:
            raise ConfigurationError("reindex: nothing would change; name what is to be different")
        if following.shards > following.bands:
            raise ConfigurationError(
                f"--shards: got {following.shards}, must be at most the number of bands,"
                f" {following.bands}"
            )
        if following.absorb < following.threshold:
            raise ConfigurationError(
                f"--absorb: got {following.absorb}, must be at least the threshold,"
                f" {following.threshold}"
            )
        check_sizes(plan, following, self._base.app)
        check_bands(current, following, self._settings.similarity, self._base.app)
        self._check_log(current, following)
        self._check_retention(following)

    def check_anew(self, plan: Plan, following: Generation) -> None:
        """Check that a generation can be built from the documents.

        Raises:
            ConfigurationError: it can't; the message says why, and what to do.
            BusError: the cluster doesn't answer.
        """
        check_anew(plan, following)
        self._check_log(plan.current, following)

    def gone(self) -> dict[int, int]:
        """Return where the documents begin, by partition, if not at their first offset."""
        found = self._cluster.ranges({self._base.documents: self._base.layout.partitions})
        return {place.partition: low for place, (low, _) in found.items() if low}

    def _check_log(self, current: Generation, following: Generation) -> None:
        if self._settings.index.snapshots.trim_log:
            raise ConfigurationError(
                "reindex: index.snapshots.trim_log deletes fingerprints that a new index is built"
                " from. Begin another application, with --app OTHER --from"
                f" app:{self._base.app}"
            )
        source = current.topology(self._base)
        low, _ = self._cluster.ranges({source.fingerprints: 1})[source.order]
        if low and (current.window == "none" or _longer(following.window, current.window)):
            raise ConfigurationError(
                f"reindex: {source.fingerprints} begins at offset {low}, so a new index would"
                " lack what was in it before. Begin another application, with --app OTHER --from"
                f" app:{self._base.app}"
            )

    def _check_retention(self, following: Generation) -> None:
        """Check that brokers keep what the new window needs."""
        settings = following.settings(self._base_settings)
        topology = following.topology(self._base)
        name = topology.fingerprints
        _, found = self._cluster.topics([name])
        state = found[name]
        for one in topic_plans(settings, topology, DEFAULT_MAX_BYTES):
            for rule in one.rules if one.name == name else ():
                given = None if state is None else state.settings.get(rule.setting)
                if given is not None and rule.severity == "error" and not rule.holds(given):
                    raise ConfigurationError(
                        f"{name}: {rule.setting} is {given}, must be {rule.takes}: set it with"
                        f" kafka-configs.sh --alter --topic {name} --add-config"
                        f" {rule.setting}={rule.value}"
                    )


def _longer(window: str, other: str) -> bool:
    """Return whether a window is longer than one that isn't ``none``."""
    return window == "none" or duration_ms(window) > duration_ms(other)


def check_sizes(plan: Plan, following: Generation, app: str) -> None:
    """Check that fingerprints have the numbers of different shingles if they are needed.

    Raises:
        ConfigurationError: they don't.
    """
    signing = plan.signing(plan.current)
    sized = plan.base.containment is not None if signing is None else signing.sized
    if following.containment is not None and not sized:
        raise ConfigurationError(
            f"--containment: got {following.containment}, but the fingerprints were made without"
            " similarity.containment, and so don't have the numbers of different shingles. Put it"
            " into the settings, and make new ones: neardup reindex --from-documents; or begin"
            f" another application: --app OTHER --from app:{app}"
        )


def check_bands(
    current: Generation, following: Generation, similarity: SimilaritySection, app: str
) -> None:
    """Check that the bands find what a generation looks for, if that is less similar than before.

    Raises:
        ConfigurationError: they find less of it than ``similarity.recall``.
    """
    ratio, wanted = similarity.containment_ratio, similarity.recall
    before, least = (sought(one.threshold, one.containment, ratio) for one in (current, following))
    found = float(candidate_chance(least, following.bands, following.rows))
    if least < before and found < wanted:
        name = "threshold" if least == following.threshold else "containment"
        raise ConfigurationError(
            f"--{name}: got {getattr(following, name)}, but the fingerprints have"
            f" {following.bands} bands of {following.rows} rows, by which {found:.0%} of such"
            f" pairs are found, and similarity.recall is {wanted}. Put it into the settings, and"
            " make new ones: neardup reindex --from-documents; or begin another application:"
            f" --app OTHER --from app:{app}"
        )


def _fingerprinted(generation: Generation, signing: Signing | None) -> tuple[object, ...]:
    """Return what makes a generation's fingerprints, without whether they are sized."""
    unsized = None if signing is None else msgspec.structs.replace(signing, sized=False)
    return generation.slots, generation.bands, generation.rows, unsized


def check_anew(plan: Plan, following: Generation) -> None:
    """Check that a generation needs fingerprints of its own.

    Raises:
        ConfigurationError: those that are there are the same.
    """
    signing = plan.signing(plan.current)
    same = _fingerprinted(plan.current, signing) == _fingerprinted(following, following.signing)
    wants_sizes = following.signing is not None and following.signing.sized
    if same and not (wants_sizes and signing is not None and not signing.sized):
        raise ConfigurationError(
            "--from-documents: the fingerprints would be the same ones; run it without"
        )
