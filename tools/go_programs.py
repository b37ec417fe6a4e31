"""Finds the programs in Go that the tests of the chart run, or has Go build them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

_FOR_KUBERNETES = " ".join(
    f"-X helm.sh/helm/v3/pkg/chartutil.k8sVersion{part}={number}"
    for part, number in (("Major", 1), ("Minor", 34))
)
"""Helm's releases are built with the version that `helm template` stands in for."""


class GoProgramUnavailable(Exception):
    """A program isn't here; the message says why in one line."""


class GoProgram(NamedTuple):
    """A program, its version, and what ``go install`` takes to build it, in a folder."""

    name: str
    version: str
    install: tuple[str, ...]
    folder: Path = Path()

    @property
    def _built(self) -> Path:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neardup"
        return cache / f"{self.name}-{self.version}"

    def path(self) -> Path:
        """Return the program: the one on the PATH, or one that was built.

        Raises:
            GoProgramUnavailable: there is none.
        """
        found = shutil.which(self.name)
        if found is not None:
            return Path(found)
        if not self._built.exists():
            where = f"no {self.name} is on the PATH or in {self._built.parent}"
            raise GoProgramUnavailable(f"{where}: make helm")
        return self._built

    def made(self) -> Path:
        """Return the program as `path` does, or have Go build it, which takes up to some minutes.

        Safe to call from several processes at once: one builds, the others wait.

        Raises:
            GoProgramUnavailable: there is none, and Go is absent or failed.
        """
        try:
            return self.path()
        except GoProgramUnavailable:
            go = shutil.which("go")
        if go is None:
            where = f"neither {self.name} nor Go is on the PATH"
            raise GoProgramUnavailable(f"{where}, and no {self.name} in {self._built.parent}")
        self._built.parent.mkdir(parents=True, exist_ok=True)
        with self._built.with_name(f"{self._built.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._built.exists():
                self._build(go)
        return self._built

    def _build(self, go: str) -> None:
        with tempfile.TemporaryDirectory(dir=self._built.parent) as scratch:
            done = subprocess.run(  # noqa: S603 -- found on the PATH
                [go, "install", *self.install],
                cwd=self.folder,
                env={**os.environ, "GOBIN": scratch},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                why = done.stderr.splitlines()[-1]
                raise GoProgramUnavailable(f"Go could not build {self.name}: {why}")
            (Path(scratch) / self.name).rename(self._built)


HELM: Final = GoProgram(
    "helm", "3.19.5", ("-ldflags", _FOR_KUBERNETES, "helm.sh/helm/v3/cmd/helm@v3.19.5")
)
POD_MONITOR: Final = GoProgram(
    "pod_monitor", "0.95.2", (".",), Path(__file__).parent / "pod_monitor"
)
"""Decodes a PodMonitor with the types of Prometheus's operator; of its version."""


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm to its end."""
    return subprocess.run(  # noqa: S603 -- found on the PATH, or built
        [HELM.path(), *arguments], capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    print(HELM.made(), POD_MONITOR.made(), sep="\n")
