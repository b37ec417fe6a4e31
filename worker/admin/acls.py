"""The table of what each command may do on a Kafka cluster with an authorizer, and nothing more."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from worker.topology import STAGES, Topology

Operation = Literal["Read", "Write", "Create", "Alter", "Delete", "Describe", "DescribeConfigs"]
Kind = Literal["topic", "group", "transactional-id"]

COMMANDS = (
    "run",
    "topics create",
    "topics verify",
    "init",
    "feed",
    "watch",
    "explain --kafka",
    "serve",
    "redrive",
    "allow",
    "forget",
    "skip",
    "reindex",
)
"""The commands that connect to Kafka. The others, ``neardup index`` among them, never do."""

_DESCRIBES: Collection[Operation] = ("Read", "Write", "Alter", "Delete")
"""What includes *Describe* on the same resource, by Kafka's rules."""


_SESSION = (
    "with `kafka.group_protocol = consumer`; without it, a worker waits as for a session of 60 s"
    " for a seat that is still taken"
)
_UNSEEN = "without it, a transaction that the brokers commit in part is not completed"
_REINDEXED = "after the first `neardup reindex`"


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """The right to an operation on a resource; with ``prefixed`` on all with that prefix.

    ``role`` says what needs it. ``when`` says in which case, or what is missing without it;
    it is empty if the command fails without the right.
    """

    kind: Kind
    name: str
    operation: Operation
    prefixed: bool = False
    role: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class _Names:
    """The resources of an application, as names or prefixes."""

    topology: Topology

    @property
    def matches(self) -> str:
        return self.topology.matches(0).removesuffix("0")

    @property
    def later(self) -> str:
        """What the names of later generations begin with, of topics, groups and transactions."""
        return f"{self.topology.app}.g"

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the three groups commit offsets of."""
        return self.topology.documents, self.topology.seats, self.matches

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.topology.unique, self.topology.duplicate, self.topology.rejected

    @property
    def internal(self) -> tuple[str, ...]:
        return self.topology.fingerprints, self.topology.seats, self.matches

    @property
    def all(self) -> tuple[str, ...]:
        one = self.topology
        return one.documents, *self.outputs, *self.internal, one.layout_log, one.redrive

    def topic(self, name: str, *operations: Operation, role: str, when: str = "") -> list[Grant]:
        prefixed = name in {self.matches, self.later}
        return [Grant("topic", name, one, prefixed, role, when) for one in operations]


def grants(
    topology: Topology,
    command: str,
    *,
    stages: Collection[str] = STAGES,
    trim_log: bool | None = None,
) -> list[Grant]:
    """Return what a principal needs for a command.

    ``stages`` and ``trim_log`` (`index.snapshots.trim_log`; None: unknown) count for ``run`` only.

    Raises:
        KeyError: there is no such command that connects to Kafka.
    """
    names = _Names(topology)
    tables: dict[str, Callable[[], Iterable[Grant]]] = {
        "run": lambda: [*_checks(names), *_run(names, stages, trim_log=trim_log)],
        "topics create": lambda: [*_checks(names, unwarned=""), *_begins(names), *_creates(names)],
        "topics verify": lambda: _checks(names),
        "init": lambda: [*_checks(names), *_begins(names), *_accepts(names)],
        "feed": lambda: _feed(names),
        "watch": lambda: _watch(names),
        "explain --kafka": lambda: _explain(names),
        "serve": lambda: [*_checks(names), *_serve(names)],
        "redrive": lambda: _redrive(names),
        "allow": lambda: _allow(names),
        "forget": lambda: _forget(names),
        "skip": lambda: _skip(names),
        "reindex": lambda: [*_checks(names, unwarned=""), *_reindex(names)],
    }
    return list(tables[command]())


def _checks(
    names: _Names, unwarned: str = "without both, a warning says that the topic is missing"
) -> Iterator[Grant]:
    """Yield what the check needs that each worker makes at its start.

    ``unwarned`` is the case of the only topic that workers don't need.
    """
    role = "check"
    for name in names.all:
        when = unwarned if name == names.topology.redrive else ""
        yield from names.topic(name, "Describe", "DescribeConfigs", role=role, when=when)
    yield from names.topic(names.topology.layout_log, "Read", role=role)
    for group in (*map(names.topology.group, STAGES), names.topology.layout_log):
        yield Grant("group", group, "Describe", role=role)
    yield from names.topic(names.later, "Describe", "DescribeConfigs", role=role, when=_REINDEXED)
    yield Grant("group", names.later, "Describe", prefixed=True, role=role, when=_REINDEXED)


def _run(names: _Names, stages: Collection[str], *, trim_log: bool | None) -> Iterator[Grant]:
    one = names.topology
    inputs = {
        "fingerprint": (one.documents,),
        "index": (one.fingerprints, one.seats),
        "route": (one.documents, names.matches),
    }
    outputs = {
        "fingerprint": (one.fingerprints, one.rejected),
        "index": (names.matches,),
        "route": names.outputs,
    }
    for stage in STAGES:
        if stage not in stages:
            continue
        group = one.group(stage)
        for name in inputs[stage]:
            yield from names.topic(name, "Read", role=stage)
        for name in outputs[stage]:
            yield from names.topic(name, "Write", role=stage)
            yield from names.topic(name, "Read", role=stage, when=_UNSEEN)
        yield Grant("group", group, "Read", role=stage)
        yield Grant("group", group, "DescribeConfigs", role=stage, when=_SESSION)
        yield Grant("transactional-id", f"{group}.", "Write", prefixed=True, role=stage)
        yield from _run_later(names, stage)
    if "index" in stages and trim_log is not False:
        when = "" if trim_log else "with `index.snapshots.trim_log`"
        yield from names.topic(one.fingerprints, "Delete", role="index", when=when)


def _run_later(names: _Names, stage: str) -> Iterator[Grant]:
    """Yield what a stage needs of the topics, groups and transactions of later generations."""
    yield from names.topic(names.later, "Read", role=stage, when=_REINDEXED)
    if stage == "route":
        return  # Its group, its outputs and its transactions stay.
    yield from names.topic(names.later, "Write", role=stage, when=_REINDEXED)
    group = Grant("group", names.later, "Read", prefixed=True, role=stage, when=_REINDEXED)
    yield from (group, replace(group, operation="DescribeConfigs"))
    yield replace(group, kind="transactional-id", operation="Write")


def _begins(names: _Names) -> Iterator[Grant]:
    """Yield what recording the layout and committing the starting offsets needs."""
    one, role = names.topology, "begin"
    yield from names.topic(one.layout_log, "Write", role=role)
    yield Grant("transactional-id", one.layout_log, "Write", role=role)
    for name in names.inputs:
        yield from names.topic(name, "Read", role=role)
    for stage in STAGES:
        yield Grant("group", one.group(stage), "Read", role=role)
    other, when = replace(one, app="OTHER"), "with `--from app:OTHER`"
    yield Grant("group", other.group("route"), "Read", role=role, when=when)
    yield Grant("group", other.layout_log, "Describe", role=role, when=when)
    yield from names.topic(other.layout_log, "Read", "DescribeConfigs", role=role, when=when)


def _accepts(names: _Names) -> Iterator[Grant]:
    when = "with `--accept`, if the documents' log has lost its end"
    yield from names.topic(names.topology.rejected, "Write", role="accept", when=when)


def _creates(names: _Names) -> Iterator[Grant]:
    for name in names.all:
        yield from names.topic(name, "Create", role="create")


def _feed(names: _Names) -> Iterator[Grant]:
    yield from names.topic(names.topology.documents, "Write", "DescribeConfigs", role="feed")


def _watch(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "watch"
    for name in names.outputs:
        yield from names.topic(name, "Read", role=role)
    for name in (one.documents, *names.internal):
        yield from names.topic(name, "Describe", role=role)
    age = "without it, lags have no age, and count transaction markers"
    for name in (one.documents, one.fingerprints):
        yield from names.topic(name, "Read", role=role, when=age)
    for group in (*map(one.group, STAGES), f"{one.app}.watch"):
        yield Grant("group", group, "Describe", role=role)
    for name in (one.layout_log, names.later):
        yield from names.topic(name, "Read", role=role, when=_REINDEXED)
    yield Grant("group", one.layout_log, "Describe", role=role, when=_REINDEXED)
    yield Grant("group", names.later, "Describe", prefixed=True, role=role, when=_REINDEXED)


def _explain(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "explain"
    for name in (one.unique, one.duplicate, one.layout_log):
        yield from names.topic(name, "Read", role=role)
    for group in (f"{one.app}.explain", one.layout_log):
        yield Grant("group", group, "Describe", role=role)


def _serve(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "serve"
    yield from names.topic(one.fingerprints, "Read", role=role)
    yield from names.topic(names.later, "Read", role=role, when=_REINDEXED)
    yield Grant("group", one.group(role), "Describe", role=role)
    page = "without it, the page lacks what it shows from there"
    for name in (one.documents, *names.outputs):
        yield from names.topic(name, "Read", role=role, when=page)
    for name in map(one.group, STAGES):
        yield Grant("group", name, "Describe", role=role, when=page)
    yield from _sends(names, role, "for corrections")


def _sends(names: _Names, role: str, when: str = "") -> Iterator[Grant]:
    """Yield what sending tombstones and corrections needs."""
    one = names.topology
    yield from names.topic(one.documents, "Write", role=role, when=when)
    yield Grant("transactional-id", one.forget, "Write", role=role, when=when)


def _looks_up(names: _Names, role: str, when: str) -> Iterator[Grant]:
    """Yield what finding a document by its id needs."""
    one = names.topology
    for name in (one.documents, one.fingerprints, one.unique, one.duplicate):
        yield from names.topic(name, "Read", role=role, when=when)
    yield Grant("group", one.group("serve"), "Describe", role=role, when=when)


def _redrive(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "redrive"
    for name in (one.documents, one.rejected, one.redrive):
        yield from names.topic(name, "DescribeConfigs", role=role)
    yield from names.topic(one.rejected, "Read", role=role)
    yield from names.topic(one.documents, "Write", role=role)
    yield from names.topic(one.redrive, "Read", "Write", role=role)
    missing = f"if `{one.redrive}` is missing"
    yield from names.topic(one.redrive, "Create", role=role, when=missing)
    yield Grant("group", one.redrive, "Describe", role=role)
    yield Grant("transactional-id", one.redrive, "Write", role=role)


def _allow(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "allow"
    yield from _sends(names, role)
    waits = "without `--no-wait`"
    known = "without it, whether a text is allowed is not known"
    yield Grant("group", one.group("route"), "Describe", role=role, when=waits)
    yield from names.topic(names.matches, "Read", role=role, when=known)
    yield from names.topic(names.later, "Read", role=role, when=f"{_REINDEXED}; {known}")
    yield from _looks_up(names, role, "with `--id`")


def _forget(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "forget"
    yield from _sends(names, role)
    waits, known = "without `--no-wait`", "without it, unknown ids are not named"
    yield Grant("group", one.group("route"), "Describe", role=role, when=waits)
    yield from names.topic(names.matches, "Read", role=role, when=known)
    yield from names.topic(names.later, "Read", role=role, when=f"{_REINDEXED}; {known}")
    yield from _looks_up(names, role, "with `--undo`; without it, ids that never were are sent")


def _skip(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "skip"
    yield from names.topic(one.documents, "Read", "DescribeConfigs", role=role)
    yield from names.topic(one.layout_log, "Read", "Write", "DescribeConfigs", role=role)
    yield Grant("transactional-id", one.layout_log, "Write", role=role)
    for group in (one.group("fingerprint"), one.group("route"), one.layout_log):
        yield Grant("group", group, "Describe", role=role)
    yield Grant("group", f"{one.app}.skip", "Describe", role=role, when="without `--to`")


def _reindex(names: _Names) -> Iterator[Grant]:
    one, role = names.topology, "reindex"
    yield from names.topic(one.layout_log, "Write", role=role)
    yield Grant("transactional-id", one.layout_log, "Write", role=role)
    yield from names.topic(one.fingerprints, "Read", "Write", role=role)
    built: tuple[Operation, ...] = ("Create", "Describe", "DescribeConfigs", "Read", "Write")
    yield from names.topic(names.later, *built, role=role)
    yield Grant("group", names.later, "Read", prefixed=True, role=role)
    documents = "with `--from-documents`"
    yield from names.topic(one.documents, "Read", role=role, when=documents)
    wider = "with `--partitions`"
    for name in (one.documents, *names.outputs, names.matches):
        yield from names.topic(name, "Alter", role=role, when=wider)
    for name in (one.documents, names.matches):
        yield from names.topic(name, "Read", role=role, when=wider)
    for stage in ("fingerprint", "route"):
        yield Grant("group", one.group(stage), "Read", role=role, when=wider)
    yield from names.topic(names.later, "Alter", role=role, when=f"{wider}, later")
    clean = "with `--clean`"
    for name in (*names.internal, names.later):
        yield from names.topic(name, "Delete", role=role, when=clean)
    for stage in ("fingerprint", "index"):
        yield Grant("group", one.group(stage), "Delete", role=role, when=clean)
    yield Grant("group", names.later, "Delete", prefixed=True, role=role, when=clean)


def minimal(wanted: Collection[Grant]) -> list[Grant]:
    """Return the grants sorted, each once, without what others on the same resource include."""
    has = {(one.kind, one.name, one.operation) for one in wanted if not one.when}
    found: dict[tuple[Kind, str, Operation], Grant] = {}
    for one in sorted(wanted, key=lambda grant: (grant.kind, grant.name, bool(grant.when))):
        included = one.operation == "Describe" and any(
            (one.kind, one.name, more) in has for more in _DESCRIBES
        )
        if not included:
            found.setdefault((one.kind, one.name, one.operation), one)
    return sorted(found.values())


def shell(wanted: Collection[Grant], principal: str) -> list[str]:
    """Return the commands that grant this to a principal, one for each resource and case.

    A command that is needed only in some case is a comment, which names the case.
    """
    resources: dict[tuple[Kind, str, bool, str], list[Operation]] = {}
    for one in minimal(wanted):
        key = (one.kind, one.name, one.prefixed, one.when)
        resources.setdefault(key, []).append(one.operation)
    return [
        " ".join(
            [
                *([f"# {when.replace('`', '')}:"] if when else []),
                "kafka-acls.sh --bootstrap-server ... --add --force",
                f"--allow-principal {shlex.quote(principal)}",
                *(f"--operation {operation}" for operation in operations),
                f"--{kind} {shlex.quote(name)}",
                *(["--resource-pattern-type prefixed"] if prefixed else []),
            ]
        )
        for (kind, name, prefixed, when), operations in resources.items()
    ]


_KINDS: dict[Kind, str] = {
    "topic": "topic",
    "group": "group",
    "transactional-id": "transactionalId",
}


def kafka_user(wanted: Collection[Grant], user: str, cluster: str) -> str:
    """Return the manifest of a user who has these rights and a password, as YAML.

    A right that is needed only in some case is a comment, which names the case.
    """
    lines = [
        "apiVersion: kafka.strimzi.io/v1",
        "kind: KafkaUser",
        "metadata:",
        f"  name: {json.dumps(user)}",
        "  labels:",
        f"    strimzi.io/cluster: {json.dumps(cluster)}",
        "spec:",
        "  authentication:",
        "    type: scram-sha-512",
        "  authorization:",
        "    type: simple",
        "    acls:",
        *_rules(wanted),
    ]
    return "\n".join(lines) + "\n"


def _rules(wanted: Collection[Grant]) -> Iterator[str]:
    rules: dict[tuple[str, Kind, str, bool], list[Operation]] = {}
    for one in sorted(minimal(wanted), key=lambda grant: grant.when):
        rules.setdefault((one.when, one.kind, one.name, one.prefixed), []).append(one.operation)
    said = ""
    for (when, kind, name, prefixed), operations in rules.items():
        if when != said:
            said = when
            yield f"      # {when.replace('`', '')}:"
        pattern = "prefix" if prefixed else "literal"
        resource = f"{{type: {_KINDS[kind]}, name: {json.dumps(name)}, patternType: {pattern}}}"
        yield f"      {'# ' if when else ''}- {{resource: {resource},"
        yield f"      {'# ' if when else ''}   operations: [{', '.join(operations)}]}}"
