"""Find Java and Kafka's jars, or say in one line why there are none.

The jars are fetched once by Maven, from the coordinates in ``pom.xml``, into a cache
outside the tree; every checkout and every run shares them.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

POM: Final = Path(__file__).with_name("pom.xml")
CONNECT: Final = Path(__file__).with_name("connect.xml")
JAVA_AT_LEAST: Final = 17
DOWNLOAD_TIMEOUT_SECONDS: Final = 600


class KafkaUnavailable(Exception):
    """There is no real broker on this machine; the message says why in one line."""


def kafka_version() -> str:
    """Return the version of Kafka that ``pom.xml`` names, the only place that does."""
    found = re.search(
        r"<artifactId>kafka_2\.13</artifactId>\s*<version>([^<]+)</version>", POM.read_text()
    )
    if found is None:
        raise ValueError(f"{POM}: no version of kafka_2.13")
    return found[1]


def java() -> str:
    """Return the path of a Java that can run the broker.

    Raises:
        KafkaUnavailable: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        raise KafkaUnavailable(
            f"no Java found (Kafka {kafka_version()} needs Java {JAVA_AT_LEAST} or newer)"
        )
    said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', said.stderr)
    if version is None or int(version[1]) < JAVA_AT_LEAST:
        seen = said.stderr.partition("\n")[0] or f"exit status {said.returncode}"
        raise KafkaUnavailable(f"{path} is not Java {JAVA_AT_LEAST} or newer: {seen}")
    return path


def jars(pom: Path = POM) -> Path:
    """Return the directory of the jars that a POM names, by default the broker's.

    Raises:
        KafkaUnavailable: they aren't here, and can't be fetched.
    """
    name = "kafka" if pom == POM else f"kafka-{pom.stem}"
    return fetched(
        pom, f"{name}-{kafka_version()}", "dependency:copy-dependencies", "-DincludeScope=runtime"
    )


def fetched(pom: Path, name: str, goal: str, *options: str) -> Path:
    """Return the directory, of this name, of what a POM names.

    Maven fetches it the first time: a goal of its plugin *dependency* does. Safe to call from
    several processes at once: one downloads, the others wait. The directory appears by a rename,
    so it is complete or absent.

    Raises:
        KafkaUnavailable: it isn't cached, and Maven is absent or failed.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neardup"
    directory = cache / name
    if directory.is_dir():
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"Maven (mvn) not found, and {directory} is not there")
    cache.mkdir(parents=True, exist_ok=True)
    with directory.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.is_dir():
            _download([maven, "-B", "-q", "-C", "-f", str(pom), goal, *options], directory)
    return directory


def _download(command: list[str], directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.") as scratch:
        got = Path(scratch) / "got"
        # What the plugin notes as done, it would not do again.
        own = (f"-Dscratch={scratch}", f"-DoutputDirectory={got}", "-Dstyle.color=never")
        try:
            done = subprocess.run(
                [*command, *own],
                capture_output=True,
                text=True,
                check=False,
                timeout=DOWNLOAD_TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise KafkaUnavailable(
                f"Maven did not fetch {directory.name} in {DOWNLOAD_TIMEOUT_SECONDS} s"
            ) from None
        if done.returncode or not got.is_dir():
            why = next(filter(None, done.stdout.splitlines()), f"exit status {done.returncode}")
            raise KafkaUnavailable(f"Maven could not fetch {directory.name}: {why}")
        got.rename(directory)
