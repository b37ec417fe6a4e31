"""What drives a reindex of running workers: a stream of documents, and the command."""

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.support.application import ApplicationUnderTest
from tests.support.checker import check, differences
from tests.support.checker.history import verdicts
from tests.support.corpus import corpus
from tests.support.generations import in_force, judged_anew
from tests.support.proof import book_of

SLICE = 200


class Feeder:
    """Feeds slices of a corpus, one every tenth of a second, until told to stop."""

    def __init__(
        self, application: ApplicationUnderTest, count: int, seed: int, each: int = SLICE
    ) -> None:
        """Begin at once; ``each`` is how many documents a slice has."""
        self._application = application
        self._texts = corpus(count, seed)
        self._each = each
        self._stopping = threading.Event()
        self.fed = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def feeding(self) -> bool:
        """Tell whether there is more to come."""
        return self.fed < len(self._texts)

    def ahead(self, count: int) -> int:
        """Return how many are fed in all once ``count`` more are, or all there are."""
        return min(self.fed + count, len(self._texts))

    def _run(self) -> None:
        while not self._stopping.wait(0.1) and self.fed < len(self._texts):
            some = self._texts[self.fed : self.fed + self._each]
            self._application.feed(self._application.documents(some, self.fed))
            self.fed += len(some)

    def stop(self) -> None:
        """Feed no more."""
        self._stopping.set()
        self._thread.join()


def started(application: ApplicationUnderTest, *arguments: str) -> subprocess.Popen[str]:
    """Start ``neardup reindex``."""
    return application.command("reindex", "--config", str(application.config), *arguments)


def ends(application: ApplicationUnderTest, command: subprocess.Popen[str]) -> str:
    """Wait until a command has ended well; return what it said."""
    with command:
        application.audit.until(lambda: command.poll() is not None, 240, "the command")
        said, _ = command.communicate()
    assert command.returncode == 0, said
    return said


def judged(
    application: ApplicationUnderTest, directory: Path, fed: int, logs: Sequence[int]
) -> float:
    """Check what was published; return the longest that a document has waited, in seconds.

    ``logs`` are those of the generations that have answered, in order.
    """
    application.audit.reach(fed)
    application.audit.finish()
    book = book_of(application)
    assert check(book.history) == []
    generations = in_force(application, application.settings)
    assert [one.generation.log for one in generations] == logs
    expected = judged_anew(book.fingerprints, generations, 1, directory)
    assert differences(verdicts(book.history), expected) == []
    return max(arrival.wait for arrival in application.audit.arrivals)
