"""Finds helm, or has Go build it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["HelmUnavailable", "helm", "made", "program"]

VERSION = "3.19.5"
"""Of helm."""
FOR_KUBERNETES = " ".join(
    f"-X helm.sh/helm/v3/pkg/chartutil.k8sVersion{part}={number}"
    for part, number in (("Major", 1), ("Minor", 34))
)
"""Helm's releases are built with the version that `helm template` stands in for."""


class HelmUnavailable(Exception):
    """There is no helm here; the message says why in one line."""


def _cached() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neardup"
    return cache / f"helm-{VERSION}"


def program() -> Path:
    """Return helm: the one on the PATH, or one that was built.

    Raises:
        HelmUnavailable: there is none.
    """
    found = shutil.which("helm")
    built = _cached()
    if found is None and not built.exists():
        raise HelmUnavailable(f"no helm is on the PATH or in {built.parent}: make helm")
    return built if found is None else Path(found)


def made() -> Path:
    """Return helm as `program` does, or have Go build it, which takes some minutes.

    Safe to call from several processes at once: one builds, the others wait.

    Raises:
        HelmUnavailable: there is none, and Go is absent or failed.
    """
    with suppress(HelmUnavailable):
        return program()
    built, go = _cached(), shutil.which("go")
    if go is None:
        raise HelmUnavailable(f"neither helm nor Go is on the PATH, and no helm in {built.parent}")
    built.parent.mkdir(parents=True, exist_ok=True)
    with built.with_name(f"{built.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _build(go, built)
    return built


def _build(go: str, built: Path) -> None:
    with tempfile.TemporaryDirectory(dir=built.parent) as scratch:
        package = f"helm.sh/helm/v3/cmd/helm@v{VERSION}"
        done = subprocess.run(  # noqa: S603 -- found on the PATH
            [go, "install", "-ldflags", FOR_KUBERNETES, package],
            env={**os.environ, "GOBIN": scratch},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise HelmUnavailable(f"Go could not build helm: {done.stderr.splitlines()[-1]}")
        (Path(scratch) / "helm").rename(built)


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm to its end."""
    return subprocess.run(  # noqa: S603 -- found on the PATH, or built
        [program(), *arguments], capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    print(made())
