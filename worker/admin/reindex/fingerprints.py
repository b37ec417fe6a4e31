"""What an index can be that is built from the fingerprints that are there."""

from __future__ import annotations

from lsh import candidate_chance
from lsh.tuning import sought
from worker.generations import Generation, Plan
from worker.settings import ConfigurationError
from worker.settings.sections import SimilaritySection

__all__ = ["check_bands", "check_sizes"]


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
