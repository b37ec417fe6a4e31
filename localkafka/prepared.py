"""What each new node begins with, made once: formatted metadata, and an archive of classes.

Kafka's tool that formats a directory takes as long as a node that starts, and writes the same for
every node but two names. The classes that it loads are most of those that a node loads, which
starts twice as fast with an archive of them.
"""

import fcntl
import hashlib
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Final

from localkafka.jars import KafkaUnavailable

CHECKPOINT: Final = "bootstrap.checkpoint"
CLASSES: Final = "classes.jsa"
SECONDS: Final = 90.0
PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
log.dirs={data}
"""


class Prepared:
    """A directory of what nodes of one Java and one Kafka begin with."""

    def __init__(self, directory: Path) -> None:
        """Take a directory that `prepared` has filled."""
        self._directory = directory

    @property
    def options(self) -> list[str]:
        """Return the options with which Java reads the archive, if it could write one."""
        classes = self._directory / CLASSES
        return [f"-XX:SharedArchiveFile={classes}"] if classes.exists() else []

    def format(self, data: Path, cluster: str, node: int) -> None:
        """Write what a node of a cluster needs to begin with an empty directory."""
        data.mkdir()
        (data / CHECKPOINT).write_bytes((self._directory / CHECKPOINT).read_bytes())
        names = {"cluster.id": cluster, "node.id": node, "directory.id": new_id(), "version": 1}
        lines = [f"{name}={value}\n" for name, value in names.items()]
        (data / "meta.properties").write_text("".join(lines))


def new_id() -> str:
    """Return an id as Kafka writes it: 22 characters."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def prepared(java: str, jars: Path) -> Prepared:
    """Return what nodes begin with; make it the first time that this Java runs these jars.

    Safe to call from several processes at once: one makes it, the others wait.

    Raises:
        KafkaUnavailable: Kafka's tool failed.
    """
    directory = jars.with_name(f"{jars.name}-{_build(java)}")
    if not directory.is_dir():
        with directory.with_name(f"{directory.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not directory.is_dir():
                _prepare(java, jars, directory)
    return Prepared(directory)


def _build(java: str) -> str:
    """Return a name for this build of Java: another one can't read its archive."""
    said = subprocess.run([java, "-version"], capture_output=True, check=True, timeout=SECONDS)
    return hashlib.sha256(said.stderr).hexdigest()[:12]


def _prepare(java: str, jars: Path, directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix=f"{directory.name}.") as scratch:
        made, data = Path(scratch) / "made", Path(scratch) / "data"
        made.mkdir()
        properties = Path(scratch) / "server.properties"
        properties.write_text(PROPERTIES.format(data=data))
        # A Java that can't write archives ignores the option.
        command = [java, "-XX:+IgnoreUnrecognizedVMOptions", "-XX:TieredStopAtLevel=1"]
        command += ["-XX:+UseSerialGC", f"-XX:ArchiveClassesAtExit={made / CLASSES}"]
        command += ["-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
        command += [f"--cluster-id={new_id()}", "-c", str(properties)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        if done.returncode:
            said = (done.stdout + done.stderr).splitlines() or [f"status {done.returncode}"]
            raise KafkaUnavailable(f"Kafka could not format a directory: {said[-1]}")
        (data / CHECKPOINT).rename(made / CHECKPOINT)
        made.rename(directory)
