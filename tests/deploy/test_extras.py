"""The extras for object stores are the packages that fsspec wants for them."""

import tomllib
from pathlib import Path

import pytest
from fsspec.registry import known_implementations

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize(
    ("extra", "protocols"),
    [("s3", ["s3"]), ("gcs", ["gs", "gcs"]), ("azure", ["abfs", "az"]), ("hf", ["hf"])],
)
def test_an_extra_has_the_package_of_its_store(extra: str, protocols: list[str]) -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    (requirement,) = extras[extra]
    for protocol in protocols:
        package = known_implementations[protocol]["class"].partition(".")[0]
        assert requirement.partition(">")[0].replace("-", "_") == package
