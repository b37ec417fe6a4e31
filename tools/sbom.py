"""The bill of materials of the wheel, in CycloneDX: the crates in it, and the packages it needs.

``make sbom`` writes it. It has neither a time nor a random number: from the same locks comes the
same file.
"""

from __future__ import annotations

import re
import tomllib
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from tools.crates import ROOT, linked
from worker import __version__

PINNED = re.compile(
    r"^([\w.-]+)==([\w.]+)( ; [^\\\n]+)?((?: \\\n +--hash=sha256:[0-9a-f]{64})+)", re.MULTILINE
)
ELSEWHERE = "sys_platform == 'win32'"


def bom() -> str:
    """Return the document, as JSON."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel = _component("pypi", "neardup", __version__, project["license"])
    wheel.type = ComponentType.APPLICATION
    made = Bom(serial_number=uuid5(NAMESPACE_URL, str(wheel.purl)))
    made.metadata.timestamp = None  # type: ignore[assignment]  # It is optional in the format.
    made.metadata.component = wheel
    parts = [
        *(_component("cargo", one.name, one.version, one.licence) for one in linked()),
        *_packages(),
    ]
    for part in parts:
        made.components.add(part)
    made.register_dependency(wheel, parts)
    return JsonV1Dot6(made).output_as_string(indent=2)


def _component(kind: str, name: str, version: str, licence: str | None = None) -> Component:
    url = PackageURL(kind, None, name, version)
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=url,
        bom_ref=str(url),
        licenses=[LicenseExpression(licence)] if licence else [],
    )


def _packages() -> list[Component]:
    """Return what the locked requirements name, each with the digests of its files."""
    text = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    found = []
    for name, version, where, digests in PINNED.findall(text):
        if ELSEWHERE in where:
            continue
        part = _component("pypi", name, version)
        for digest in re.findall(r"sha256:([0-9a-f]{64})", digests):
            part.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
        found.append(part)
    return found


if __name__ == "__main__":
    print(bom())
