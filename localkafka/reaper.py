"""Clean up after a cluster, also when the test process died without a word.

Runs as a process of its own, one per cluster, and reads from a pipe that only the
test process holds open: ``+123`` means that broker 123 was started, ``-123`` that it
was reaped. The pipe ends when the cluster is closed, or when the test process is
gone for whatever reason (SIGKILL included). Then what still runs is killed, by pid,
and the cluster's directory is removed.

Why not ``PR_SET_PDEATHSIG``: it is Linux only, it fires when the *thread* that
started the broker ends, it needs a ``preexec_fn`` (unsafe beside librdkafka's
threads), and it would leave the directory behind.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

DEADLINE_SECONDS = 5.0
POLL_SECONDS = 0.02


def main() -> None:
    """Follow the pipe on standard input to its end, then clean up ``argv[1]``."""
    directory = sys.argv[1]
    running: set[int] = set()
    for line in sys.stdin:
        pid = int(line[1:])
        if line[0] == "+":
            running.add(pid)
        else:
            running.discard(pid)

    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(map(_exists, running)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
