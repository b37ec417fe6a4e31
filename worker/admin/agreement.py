"""What all workers of an application must agree on, in words that a person can compare."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lsh import SWITCHES
from worker.admin.cluster import Cluster
from worker.bus import BusError
from worker.settings.model import Settings
from worker.topology import Topology
from worker.untrusted import NOT_READ, why

_VERSION = 1
_OF_VERSION = " of this version of neardup"
_BOILERPLATE = "similarity.boilerplate (the digest of its lines)"
_SEED = "similarity.seed (its digest)"
_PARAMETERS = {
    "scheme": f"the fingerprint scheme{_OF_VERSION}",
    "normaliser": f"the normaliser{_OF_VERSION}",
    "unicode": f"the Unicode data{_OF_VERSION}",
    "sketch_bits": f"the sketch size{_OF_VERSION}",
    "seed_digest": _SEED,
    "boilerplate": _BOILERPLATE,
}
"""What isn't a setting by the name that `Parameters.describe` gives."""
_WINDOW = "index.window"
_ALLOWANCE = "index.future_allowance_seconds"
_SAME_ID = "index.same_id"
_CONTAINMENT = "similarity.containment"
_NOT_NAMED = {
    _WINDOW: "none",
    _SAME_ID: json.dumps("duplicate"),
    _CONTAINMENT: "none",
    _BOILERPLATE: "none",
}
"""What a record means that doesn't name a setting. So those of earlier versions stay valid."""
_PARTITIONS = "partitions of "
_BY_CHOICE = ("documents.", "limits.", "topics.")
"""What an operator may change while the application goes on. The rest decides what the stages'
frames and the index mean, and is fixed once there are any."""

_REINDEXED = {
    "index.shards": "--shards",
    "index.absorb": "--absorb",
    "index.bucket_capacity": "--bucket-capacity",
    _WINDOW: "--window",
    "similarity.threshold": "--threshold",
    _CONTAINMENT: "--containment",
}
"""What `neardup reindex` changes from the fingerprints, by its options."""
_FROM_DOCUMENTS = {
    f"similarity.{name}"
    for name in ("shingle", "shingle_size", "slots", "bands", "rows", *SWITCHES)
}
"""What it changes with new fingerprints."""

Facts = Mapping[str, object]
"""By the name of the setting: scalars, and lists of them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact on which this worker and the application don't agree."""

    name: str
    recorded: str
    here: str

    @property
    def by_choice(self) -> bool:
        """Tell whether an operator may change it while the application goes on."""
        return self.name.startswith(_BY_CHOICE)


def way_on(one: Difference, app: str, *, begun: bool) -> str:
    """Return what to do about a difference; ``begun``: whether the application has frames."""
    if one.by_choice or not begun:
        return "`neardup init --accept` makes all workers use the settings given here"
    back = f"set {one.name} to {one.recorded} again"
    if one.name in _REINDEXED:
        change = f"{_REINDEXED[one.name]} {one.here}".replace('"', "")
        return f"{back}, or change it for all workers: `neardup reindex {change}`"
    if one.name in _FROM_DOCUMENTS:
        anew = "`neardup reindex --from-documents`"
        return f"{back}, or make new fingerprints by these settings: {anew}"
    if one.name.endswith(_OF_VERSION):
        back = "run the version of neardup that its other workers run"
    elif one.name in {_SEED, _BOILERPLATE}:
        setting = one.name.split(" ")[0]
        back = f"put the {setting} back that its other workers have; no reindex can change it"
    return f"{back}. For another one, begin another application: --app OTHER --from app:{app}"


def agreed(settings: Settings, topology: Topology) -> Facts:
    """Return what a worker with these settings takes for granted of all others."""
    documents, limits = settings.documents, settings.limits
    parameters = {
        _PARAMETERS.get(name, f"similarity.{name}"): value
        for name, value in topology.layout.parameters.describe().items()
    }
    return {
        _partitions_of(topology.documents): topology.layout.begun_with,
        "index.shards": topology.layout.shards,
        "index.absorb": settings.absorb,
        "index.bucket_capacity": settings.index.bucket_capacity,
        **_window(settings),
        **_same_id(settings),
        **parameters,
        "documents.format": documents.format,
        "documents.id_field": documents.id_field,
        "documents.text_fields": list(documents.text_fields),
        "documents.time_field": documents.time_field,
        "documents.time_format": documents.time_format,
        "documents.require_id": documents.require_id,
        "documents.key": documents.key,
        "documents.deletes": documents.deletes,
        "documents.deleted_id_field": documents.deleted_id_field,
        "limits.text_characters": limits.text_characters,
        "limits.id_bytes": limits.id_bytes,
        "limits.record_bytes": limits.record_bytes,
        "topics.documents": topology.documents,
        "topics.unique": topology.unique,
        "topics.duplicate": topology.duplicate,
        "topics.rejected": topology.rejected,
    }


def _window(settings: Settings) -> Facts:
    """Return what decides when the index forgets; nothing if it never does.

    The allowance then decides it, too: documents' times are bounded by it.
    """
    index = settings.index
    if index.window_ms is None:
        return {}
    return {
        _WINDOW: index.window,
        _ALLOWANCE: float(index.future_allowance_seconds),
    }


def _same_id(settings: Settings) -> Facts:
    """Return what a repeated id means; nothing if it means what it meant in earlier versions."""
    return {} if settings.index.same_id == "duplicate" else {_SAME_ID: settings.index.same_id}


def with_similarity(settings: Settings, facts: Facts) -> Settings:
    """Return settings with the recorded ones of the section ``similarity`` in place of their own.

    The seed and the list of lines stay: only their digests are recorded.
    """
    fields = type(settings.similarity).model_fields
    said = {name: facts.get(f"similarity.{name}") for name in fields}
    own = {name: value for name, value in said.items() if value is not None}
    own["containment"] = facts.get(_CONTAINMENT)
    similarity = settings.similarity.model_copy(update=own)
    return settings.model_copy(update={"similarity": similarity})


def partitions_in(facts: Facts, documents: str) -> int | None:
    """Return how many partitions of the documents were recorded; None if that isn't recorded."""
    count = facts.get(_partitions_of(documents))
    return count if isinstance(count, int) else None


def _partitions_of(documents: str) -> str:
    return f"{_PARTITIONS}{documents}"


def differences(recorded: Facts, here: Facts) -> list[Difference]:
    """Compare what an application has recorded with what a worker takes for granted."""
    return list(_different(recorded, here))


def _different(recorded: Facts, here: Facts) -> Iterator[Difference]:
    documents = "topics.documents"
    other = recorded.get(documents) != here.get(documents)
    for name in {**recorded, **here}:
        if other and name.startswith(_PARTITIONS):
            continue  # Of different topics, so their numbers say nothing.
        if name == _ALLOWANCE and not (name in recorded and name in here):
            continue  # Only one of them has a window, which is the difference.
        both = [_shown(facts, name) for facts in (recorded, here)]
        if both[0] != both[1]:
            yield Difference(name, *both)


def _shown(facts: Facts, name: str) -> str:
    if name not in facts:
        return _NOT_NAMED.get(name, "unknown")
    value = facts[name]
    return "unset" if value is None else json.dumps(value, ensure_ascii=False)


def dump(facts: Facts) -> bytes:
    """Return what is recorded."""
    return json.dumps({"version": _VERSION, "facts": facts}, ensure_ascii=False).encode()


def load(value: bytes) -> Facts:
    """Read what was recorded.

    Raises:
        ValueError: it is no such record, or one of a newer version.
    """
    try:
        given = json.loads(value)
    except NOT_READ as error:
        raise ValueError(why(error)) from error
    version = given.get("version") if isinstance(given, dict) else None
    if version != _VERSION:
        raise ValueError(f"its version is {version!r}, and this neardup reads {_VERSION}")
    facts = given.get("facts")
    if not isinstance(facts, dict):
        raise ValueError("it has no facts")  # noqa: TRY004 -- what was read is wrong, not a type
    return facts


LAYOUT_KEY = b"layout"


def recorded(cluster: Cluster, topology: Topology) -> Facts | None:
    """Return the facts recorded in the topic, which must exist; None if there are none.

    Raises:
        BusError: the cluster doesn't answer, or the record can't be understood.
    """
    topic = topology.layout_log
    value = cluster.last_records(topic).get(LAYOUT_KEY)
    try:
        return None if value is None else load(value)
    except ValueError as error:
        raise BusError(f"{topic}: its record can't be understood: {error}") from error


def begun_with(cluster: Cluster, topology: Topology) -> int | None:
    """Return with how many partitions of the documents an application began, if that is recorded.

    Raises:
        BusError: the cluster doesn't answer, or the record can't be understood.
    """
    _, topics = cluster.counts()
    facts = recorded(cluster, topology) if topology.layout_log in topics else None
    return None if facts is None else partitions_in(facts, topology.documents)
