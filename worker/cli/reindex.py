"""``neardup reindex``: replace the index of a running application by one with other rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic, sleep

from worker.admin.cluster import Cluster
from worker.admin.reindex.run import Progress, Reindex, changed_rules
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.screen import print_json
from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.visible import counted, tell

_PAUSE_SECONDS = 1.0
_HURRY_SECONDS = 0.2
"""Between two looks while documents wait."""
_TOLD_EVERY_SECONDS = 10.0
"""Between two lines that say how far it is."""
_NEAR = 2
"""Offsets at the end of a log that may be markers."""
_MARKERS = 100
"""So few offsets are looked at to see whether they are markers alone."""
_RECENT_SECONDS = 5.0
"""A shard that has read all that was in the log so long ago is up to date."""


def _begun(settings: Settings, *, anew: bool = False) -> Reindex:
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    return Reindex(Cluster(settings.kafka_options()), settings, anew=anew)


def reindex(settings: Settings, rules: dict[str, object], *, anew: bool = False) -> None:
    """Build an index with these rules, hand over to it, and leave the earlier one.

    If that is under way, go on with it. With ``anew``, the settings have all of its rules, and it
    gets fingerprints of its own, which are made from the documents.

    Raises:
        ConfigurationError: it can't be built.
        CommandError: the user doesn't want to wait.
        BusError: Kafka failed.
    """
    if anew and rules:
        option = next(iter(rules)).replace("_", "-")
        raise ConfigurationError(
            f"--from-documents: got --{option} as well; put that into the settings, which have all"
            " that is to be different"
        )
    run = _begun(settings, anew=anew)
    plan = run.plan()
    wanted = Generation.fingerprinted(settings) if anew else changed_rules(plan.current, **rules)
    if plan.following is None:
        if anew:
            run.checks.check_anew(plan, wanted)
            _tell_gone(run)
        else:
            run.checks.check(plan, wanted)
        wanted = run.prepare(plan, wanted, anew=anew)
    elif not rules and not anew:
        wanted = plan.following
    run.begin(wanted)
    try:
        _wait(run)
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted: the workers go on with what was begun; run `neardup reindex` again to go"
            " on, or `neardup reindex --abort`",
            130,
        ) from None


def widen(
    settings: Settings, partitions: int, rules: dict[str, object], *, anew: bool = False
) -> None:
    """Have workers read so many partitions of the documents, without other ``rules``.

    Raises:
        ConfigurationError: it can't be done.
        BusError: Kafka failed.
    """
    others = ["from-documents"] if anew else [name.replace("_", "-") for name in rules]
    if others:
        raise ConfigurationError(
            f"--partitions: got --{others[0]} as well; run one after the other"
        )
    grown = _begun(settings).widen(partitions)
    for topic in grown.added:
        tell(f"{topic} has {counted(partitions, 'partition')} now")
    if partitions == grown.read:
        tell(f"workers read {counted(partitions, 'partition')} of the documents already")
    else:
        tell(
            f"done: workers read {counted(partitions, 'partition')} of the documents"
            f" ({grown.read} before). Those that run take the new ones up by"
            " themselves, within some ten seconds"
        )


def _tell_gone(run: Reindex) -> None:
    """Say which documents can't have new fingerprints."""
    for partition, low in run.checks.gone().items():
        tell(
            f"partition {partition} of the documents begins at offset {low}: what was before it is"
            " gone, and the new index won't know it"
        )


def _wait(run: Reindex) -> None:
    progress = run.progress()
    if not progress.plan.handed_over:
        _build(run, progress)
        run.hand_over()
    tell("handed over; waiting until all that came before is published")
    if progress.plan.rewriting:
        _until(run, lambda _progress: run.written(), "handing over", _HURRY_SECONDS)
        run.direct()
    _until(run, lambda _progress: run.through(), "handing over")
    run.finish()
    progress = run.progress()
    tell(
        f"done: {_described(progress.plan.current)} is in use. Put its rules into the settings, and"
        " run `neardup reindex --clean` to delete what is left of the earlier one"
    )


def _build(run: Reindex, progress: Progress) -> None:
    """Wait until the next generation can take over."""
    tell(f"building {_described(progress.plan.following)}")
    shards = _up_to_date(_shards, run.nothing_for_shards)
    if not progress.plan.rewriting:
        _until(run, shards, "building")
        return
    if not progress.plan.closing:
        # The shards come second: they can't be further than the log that they read.
        _until(run, _up_to_date(_log, run.nothing_to_rewrite), "building")
        _until(run, shards, "building")
        run.close()
    tell("sealing the earlier fingerprints: documents that come now wait for the new ones")
    _until(run, lambda _progress: run.sealed(), "sealing", _HURRY_SECONDS)


def _shards(progress: Progress) -> tuple[int, list[int | None]]:
    """Return the end of the log that shards read, and how far they are."""
    return progress.end, list(progress.reached.values())


def _log(progress: Progress) -> tuple[int, list[int | None]]:
    """Return the end of the earlier log, and how far it has new fingerprints."""
    return progress.source, [progress.rewritten]


def _up_to_date(
    reading: Callable[[Progress], tuple[int, list[int | None]]],
    nothing: Callable[[int, int], bool],
) -> Callable[[Progress], bool]:
    """Return what tells whether all readers have read what was in their log some seconds ago.

    ``nothing`` looks whether there is no record between two offsets of that log.
    """
    ends: list[tuple[float, int]] = []

    def near(progress: Progress) -> bool:
        now = monotonic()
        end, reached = reading(progress)
        ends.append((now, end))
        before = [end for seen, end in ends if now - seen >= _RECENT_SECONDS]
        del ends[: max(0, len(before) - 1)]
        if not before or None in reached:
            return False
        least = min((at for at in reached if at is not None), default=end)
        # The last offsets are markers, which nobody commits: several, if workers wrote in turns.
        left = before[-1] - least
        return left <= 0 or (left <= _MARKERS and nothing(least, before[-1]))

    return near


def _until(
    run: Reindex,
    holds: Callable[[Progress], bool],
    doing: str,
    pause: float = _PAUSE_SECONDS,
) -> None:
    for number in count(1):
        progress = run.progress()
        if progress.plan.following is None:
            raise CommandError("another command has ended this reindex", EXIT_FAILED)
        if holds(progress):
            return
        if number % round(_TOLD_EVERY_SECONDS / pause) == 0:
            tell(f"{doing}: {_left(progress)}")
        sleep(pause)


def _left(progress: Progress) -> str:
    if progress.plan.closing and not progress.plan.handed_over:
        return "not all partitions of the documents are sealed; do all workers run this version?"
    behind = progress.source - progress.rewritten
    if progress.plan.rewriting and behind > _NEAR:
        offsets = counted(progress.source, "offset")
        return f"{behind:,} of {offsets} of the earlier log are left to rewrite"
    waiting = [shard for shard, at in progress.reached.items() if at is None]
    if waiting:
        return f"no worker has begun shard {waiting[0]} yet"
    offsets = counted(progress.end, "offset is", "offsets are")
    return f"{progress.left:,} of {offsets} left for the slowest shard"


def _described(generation: Generation | None) -> str:
    if generation is None:
        return "nothing"
    log = ", new fingerprints" if generation.log and generation.log == generation.number else ""
    share = generation.containment
    containment = "" if share is None else f", containment {share:g}"
    return (
        f"generation {generation.number} ({counted(generation.shards, 'shard')}, threshold"
        f" {generation.threshold:g}{containment}, absorb {generation.absorb:g}, capacity"
        f" {generation.bucket_capacity}, window {generation.window}{log})"
    )


def status(settings: Settings, *, as_json: bool) -> None:
    """Print which generation is in use, and how far the next one is."""
    progress = _begun(settings).progress()
    if as_json:
        print_json(_facts(progress))
        return
    for line in _lines(progress):
        print(line)  # noqa: T201 -- what was asked for


def _lines(progress: Progress) -> Iterator[str]:
    plan = progress.plan
    yield f"in use: {_described(plan.current)}"
    if plan.partitions:
        read = counted(plan.partitions, "partition")
        yield f"read: {read} of the documents, at first {plan.begun_with}"
    if plan.following is not None:
        state = f"is being built: {_left(progress)}"
        if plan.closing or plan.handed_over:
            state = "takes over"
        yield f"{_described(plan.following)} {state}"
    for generation in plan.left:
        yield f"left: {_described(generation)}"


def _facts(progress: Progress) -> dict[str, object]:
    plan = progress.plan
    return {
        "state": _state(plan),
        "generation": plan.current.number,
        "following": None if plan.following is None else plan.following.number,
        "left": [one.number for one in plan.left],
        "partitions": {"read": plan.partitions, "begun_with": plan.begun_with}
        if plan.partitions
        else None,
        "end": progress.end,
        "reached": {str(shard): at for shard, at in progress.reached.items()},
        "earlier": {"end": progress.source, "rewritten": progress.rewritten}
        if plan.rewriting
        else None,
    }


def _state(plan: Plan) -> str:
    if plan.following is None:
        return "idle"
    return "taking over" if plan.handed_over or plan.closing else "building"


def abort(settings: Settings) -> None:
    """Give up the generation that is being built.

    Raises:
        CommandError: it has taken over, or is about to.
    """
    if not _begun(settings).abort():
        raise CommandError(
            "the next generation takes over already; `neardup reindex` goes on with it",
            EXIT_FAILED,
        )
    tell("nothing is being built")


def clean(settings: Settings) -> None:
    """Delete the topics and groups of generations that nobody runs.

    Raises:
        BusError: Kafka refuses.
    """
    for name in _begun(settings).clean():
        tell(f"deleted {name}")
