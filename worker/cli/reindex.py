"""``neardup reindex``: replace the index of a running application by one with other rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from worker.admin.cluster import Cluster
from worker.admin.reindex.progress import Progress, described
from worker.admin.reindex.run import Ended, Reindex
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import App, Bootstrap, Config, for_kafka, settings_of
from worker.cli.screen import print_json
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.visible import counted, tell


def reindex(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    shards: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="index.shards from then on."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="T", min=0.01, max=1, help="similarity.threshold from then on."),
    ] = None,
    containment: Annotated[
        str | None,
        typer.Option(
            metavar="none|SHARE",
            help="similarity.containment from then on; only if the application began with one.",
        ),
    ] = None,
    absorb: Annotated[
        float | None,
        typer.Option(metavar="A", min=0.01, max=1, help="index.absorb from then on."),
    ] = None,
    bucket_capacity: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4_096, help="index.bucket_capacity from then on."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="none|LENGTH", help="index.window from then on, such as 30d."),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Have workers read so many partitions of the documents, and add those that"
            " are missing. No index is built.",
        ),
    ] = None,
    from_documents: Annotated[
        bool,
        typer.Option(
            "--from-documents",
            help="Make new fingerprints, too. The settings have all that is to be different.",
        ),
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Print how far it is.")] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Give up what is being built, and has not taken over.")
    ] = False,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Delete the topics and groups that earlier indexes have left."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --status: print JSON.")] = False,
) -> None:
    """Change the shards and rules of the index of running workers, without downtime.

    The workers build the new index from the fingerprints beside the one in use. Then all verdicts
    come from it, from one point in the order of documents on. Run the command again to go on after
    an interruption.
    """
    settings = for_kafka(config, bootstrap, app)
    if status:
        _print_status(_reindex(settings).progress(), as_json=as_json)
    elif abort:
        _abort(settings)
    elif clean:
        for name in _reindex(settings).clean():
            tell(f"deleted {name}")
    else:
        given: dict[str, object] = {
            "shards": shards,
            "threshold": threshold,
            "absorb": absorb,
            "bucket_capacity": bucket_capacity,
        }
        rules = {name: value for name, value in given.items() if value is not None}
        if window is not None:
            own = settings_of(config, bootstrap, app, index__window=window)
            rules["window"] = own.index.window
        if containment is not None:
            own = settings_of(config, bootstrap, app, similarity__containment=containment)
            rules["containment"] = own.similarity.containment
        options = [name.replace("_", "-") for name in rules]
        if partitions is not None:
            _widen(settings, partitions, ["from-documents"] if from_documents else options)
        else:
            if from_documents and options:
                raise ConfigurationError(
                    f"--from-documents: got --{options[0]} as well; put that into the settings,"
                    " which have all that is to be different"
                )
            _carry_out(settings, rules, anew=from_documents)


def _reindex(settings: Settings, *, anew: bool = False) -> Reindex:
    return Reindex(Cluster(settings.kafka_options()), settings, anew=anew)


def _carry_out(settings: Settings, rules: dict[str, object], *, anew: bool) -> None:
    """Build an index with these rules, hand over to it, and leave the earlier one.

    If that is under way, go on with it. With ``anew``, the settings have all of its rules, and it
    gets fingerprints of its own, which are made from the documents.
    """
    run = _reindex(settings, anew=anew)
    run.begin(rules)
    try:
        run.carry_through()
    except Ended:
        raise CommandError("another command has ended this reindex", EXIT_FAILED) from None
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted: the workers go on with what was begun; run `neardup reindex` again to go"
            " on, or `neardup reindex --abort`",
            130,
        ) from None


def _widen(settings: Settings, partitions: int, others: list[str]) -> None:
    """Have workers read so many partitions of the documents; ``others`` are options beside it."""
    if others:
        raise ConfigurationError(
            f"--partitions: got --{others[0]} as well; run one after the other"
        )
    grown = _reindex(settings).widen(partitions)
    read = counted(partitions, "partition")
    for topic in grown.added:
        tell(f"{topic} has {read} now")
    if partitions == grown.read:
        tell(f"workers read {read} of the documents already")
    else:
        tell(
            f"done: workers read {read} of the documents ({grown.read} before). Those that run take"
            " the new ones up by themselves, within some ten seconds"
        )


def _abort(settings: Settings) -> None:
    if not _reindex(settings).abort():
        raise CommandError(
            "the next generation takes over already; `neardup reindex` goes on with it",
            EXIT_FAILED,
        )
    tell("nothing is being built")


def _print_status(progress: Progress, *, as_json: bool) -> None:
    """Print which generation is in use, and how far the next one is."""
    if as_json:
        print_json(_facts(progress))
        return
    for line in _lines(progress):
        print(line)  # noqa: T201 -- what was asked for


def _lines(progress: Progress) -> Iterator[str]:
    plan = progress.plan
    yield f"in use: {described(plan.current)}"
    if plan.partitions:
        read = counted(plan.partitions, "partition")
        yield f"read: {read} of the documents, at first {plan.begun_with}"
    if plan.following is not None:
        state = f"is being built: {progress.left()}"
        if plan.state != "building":
            state = "takes over"
        yield f"{described(plan.following)} {state}"
    for generation in plan.left:
        yield f"left: {described(generation)}"


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
    return "taking over" if plan.state == "sealing" else plan.state
