"""The index is replaced by its next generation, again and again, and the command is killed."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from chaos.fault import Fault, World
from worker.generations.plan import Plan

_MOMENTS: Final[Mapping[str, Callable[[Plan], bool]]] = {
    "building": lambda plan: plan.following is not None,
    "sealing": lambda plan: plan.closing,
    "handing-over": lambda plan: plan.handed_over,
}


class Reindex(Fault):
    """Other shards and rules; the command is killed early, and goes on beside what comes next."""

    name = "reindex"
    everywhere = False
    holds: ClassVar[tuple[float, ...]] = (0.7, 1.1, 1.6, 2.4, 4.0, 7.0)
    """Topics are created in the second second; building takes 5 s at least."""

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """What changes: the number of shards, and a rule."""
        del victims
        return (
            "--shards 6 --threshold 0.9",
            "--shards 3 --bucket-capacity 4",
            "--shards 5 --window 20s",
            "--shards 2 --threshold 0.8 --window none",
        )

    def inject(self, world: World, target: str) -> str:
        """Begin it, once the one before is done."""
        world.reindexing.begin(target.split())
        return f"began to reindex: {target}"

    def heal(self, world: World, target: str) -> None:
        """Kill the command, and run it again."""
        del target
        world.reindexing.kill()
        world.reindexing.run()


class ReindexAnew(Reindex):
    """The same with new fingerprints, made from the documents by other settings."""

    name = "reindex-anew"
    sections: ClassVar[tuple[Mapping[str, object], ...]] = (
        {"shingle_size": 4, "slots": 96},
        {"shingle": "word", "shingle_size": 2, "fold_digits": True},
        {"shingle_size": 6, "slots": 160, "threshold": 0.7},
    )
    """Of the similarity; each is other fingerprints than all others."""

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """What changes, as JSON."""
        del victims
        return tuple(map(json.dumps, cls.sections))

    def inject(self, world: World, target: str) -> str:
        """Begin it, once the one before is done."""
        changed = {"similarity": json.loads(target)}
        config = world.application.write_config("anew.toml", changed)
        world.reindexing.begin(["--from-documents", "--config", str(config)])
        return f"began to make new fingerprints: {target}"


class ReindexOften(Reindex):
    """The same again and again, of an index that forgets nothing, among all other faults.

    What it keeps to: none of these rules finds more than those with which the run begins.
    """

    name = "reindex-often"

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Each is other rules than those before it, also than those of the last."""
        del victims
        return (
            "--shards 2 --threshold 0.85",
            "--shards 3 --threshold 0.8 --containment 0.95",
            "--shards 2 --containment none",
            "--shards 5 --threshold 0.9 --containment 0.9",
            "--shards 3 --threshold 0.8",
        )

    def inject(self, world: World, target: str) -> str:
        """Begin it, once the one before is done; its answers will be old one day."""
        done = super().inject(world, target)
        if world.retention is not None:
            world.retention.forget_answers(world.reindexing.in_use())
        return done


class ReindexKilled(Fault):
    """SIGKILL of the command at a step of its own; it is run again at once, or later."""

    name = "reindex-kill"
    everywhere = False
    holds = (0.0, 6.0)

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """What the workers are told to do when it dies."""
        del victims
        return ("building", "handing-over")

    def inject(self, world: World, target: str) -> str:
        """Wait for the moment, and kill."""
        world.reindexing.await_plan(_MOMENTS[target], f"a reindex that is {target}")
        killed = world.reindexing.kill()
        return f"killed the command while {target}" if killed else "the reindex was done before"

    def heal(self, world: World, target: str) -> None:
        """Run it again."""
        del target
        world.reindexing.run()


class ReindexAnewKilled(ReindexKilled):
    """The same of a reindex that makes new fingerprints, also while the earlier log is sealed."""

    name = "reindex-anew-kill"

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """What the workers are told to do when it dies."""
        del victims
        return tuple(_MOMENTS)
