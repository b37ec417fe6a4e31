"""What is worth a warning in settings that are valid."""

from __future__ import annotations

from worker.settings.environment import service_links
from worker.settings.model import Settings

__all__ = ["PUBLIC_SEED", "advice"]

_NAMED = 3

PUBLIC_SEED = (
    "similarity.seed is the default, which is public: whoever may send documents can make some that"
    " pass for copies of others. Set a seed of your own before the first document is read"
)


def advice(settings: Settings) -> list[str]:
    """Return the warnings for whoever starts a worker with these settings, each one line."""
    found = []
    links = service_links()
    if links:
        more = f", and {len(links) - _NAMED} more" if len(links) > _NAMED else ""
        found.append(
            f"ignoring {', '.join(links[:_NAMED])}{more}: Kubernetes sets them for services whose"
            " names begin with neardup. enableServiceLinks: false in the pod leaves them out"
        )
    if settings.similarity.default_seed:
        found.append(PUBLIC_SEED)
    return found
