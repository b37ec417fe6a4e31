"""What nodes begin with: made once, and read by Kafka and Java as if each had its own."""

import subprocess
from pathlib import Path

import pytest

from localkafka.jars import KafkaUnavailable, jars, java
from localkafka.prepared import PROPERTIES, new_id, prepared

pytestmark = pytest.mark.usefixtures("kafka_cluster")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of jars for which nothing has been prepared yet."""
    path = tmp_path_factory.mktemp("cache") / "kafka"
    path.symlink_to(jars())
    return path


@pytest.mark.slow
def test_it_is_made_once(cache: Path) -> None:
    first = prepared(java(), cache)
    made = {path: path.stat().st_ino for path in cache.parent.rglob("kafka-*/*")}
    assert {path.name for path in made} == {"bootstrap.checkpoint", "classes.jsa"}
    assert prepared(java(), cache).options == first.options
    assert {path: path.stat().st_ino for path in made} == made


@pytest.mark.slow
def test_kafka_finds_a_formatted_directory_with_the_archive_in_use(
    cache: Path, tmp_path: Path
) -> None:
    given, data, cluster = prepared(java(), cache), tmp_path / "data", new_id()
    given.format(data, cluster, 1)
    properties = tmp_path / "server.properties"
    properties.write_text(PROPERTIES.format(data=data))
    command = [java(), "-Xshare:on", *given.options, "-cp", f"{cache}/*"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command += ["kafka.tools.StorageTool", "info", "-c", str(properties)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"cluster.id={cluster}, " in done.stdout
    assert "node.id=1, " in done.stdout


def test_jars_that_are_no_kafka_are_named(tmp_path: Path) -> None:
    empty = tmp_path / "kafka"
    empty.mkdir()
    with pytest.raises(KafkaUnavailable, match=r"could not format a directory: .*StorageTool"):
        prepared(java(), empty)
    assert not [path for path in tmp_path.glob("kafka-*") if path.is_dir()]
