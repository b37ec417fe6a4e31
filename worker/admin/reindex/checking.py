"""Checks whether a generation can be built from what is there."""

from __future__ import annotations

from lsh import candidate_chance
from lsh.tuning import sought
from worker.admin.cluster import Cluster
from worker.admin.plan import DEFAULT_MAX_BYTES
from worker.admin.plan import plan as topic_plans
from worker.admin.reindex import rewriting
from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.settings.sections import SimilaritySection
from worker.settings.units import duration_ms
from worker.topology import Topology


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
        rewriting.check_anew(plan, following)
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
