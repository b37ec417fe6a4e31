"""A worker that must not start."""

from collections.abc import Mapping

from tests.support.application import ApplicationUnderTest
from tests.support.worker_process import WorkerProcess


def refused(
    application: ApplicationUnderTest,
    more: Mapping[str, Mapping[str, object]] | None = None,
    *arguments: str,
    name: str = "refused",
) -> str:
    """Start a worker that must be refused; give the one line that it ends with."""
    config = application.write_config(f"{name}.toml", more or {})
    worker = WorkerProcess(name, config, application.directory / name)
    application.workers[name] = worker
    application.track(worker.start(*arguments))
    assert worker.wait(60) == 2, worker.tail()
    assert "Traceback" not in worker.output(), worker.tail()
    lines = [line for line in worker.output().splitlines() if line.startswith("neardup: ")]
    assert len(lines) == 1, worker.tail()
    assert worker.output().splitlines()[-1] == lines[0]
    return lines[0]
