"""Run a command that needs Rust: with the cargo on the PATH, or with one that is fetched.

`python tools/rust.py cargo fmt` uses the cargo on the PATH if it is as new as `core/Cargo.toml`
wants. Otherwise puccinialin fetches rustup and the present stable Rust into the user's cache,
where later builds find it. Nothing outside that folder changes. `--quiet` before the command shows
what it prints only if it fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

CRATE = Path(__file__).resolve().parents[1] / "core"

Version = tuple[int, ...]


def wanted() -> Version:
    """Return the oldest Rust that compiles the core."""
    manifest = tomllib.loads((CRATE / "Cargo.toml").read_text(encoding="utf-8"))
    return tuple(map(int, manifest["package"]["rust-version"].split(".")))


def version(environment: Mapping[str, str]) -> Version | None:
    """Return the version of the cargo on an environment's PATH, None if there is none that runs."""
    cargo = shutil.which("cargo", path=environment["PATH"])
    if cargo is None:
        return None
    asked = subprocess.run(  # noqa: S603  cargo, from the PATH
        [cargo, "--version"],
        env=environment,
        cwd=CRATE,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.match(r"cargo (\d+)\.(\d+)\.(\d+)", asked.stdout)
    return tuple(map(int, found.groups())) if found else None


def with_rust(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with a cargo that is new enough. Fetch it if there is none."""
    least = ".".join(map(str, wanted()))
    on_path = version(environment)
    if on_path is not None and on_path >= wanted():
        return dict(environment)

    # A wheel of puccinialin's, imported where no cargo is at hand: few need it.
    from platformdirs import user_cache_path  # noqa: PLC0415

    # Where maturin has puccinialin put it, too.
    home = user_cache_path("puccinialin")
    there = {
        **environment,
        "CARGO_HOME": str(home / "cargo"),
        "RUSTUP_HOME": str(home / "rustup"),
        "PATH": os.pathsep.join([str(home / "cargo" / "bin"), environment["PATH"]]),
        "RUSTUP_INIT_SKIP_PATH_CHECK": "yes",
    }
    there.pop("RUSTUP_TOOLCHAIN", None)
    fetched = version(there)
    if fetched is not None and fetched >= wanted():
        return there

    old = "no cargo" if on_path is None else f"cargo {'.'.join(map(str, on_path))}"
    say(f"{old} is on the PATH, and {least} or newer is needed: fetching Rust into {home}")
    fetching = subprocess.run(  # noqa: S603  a module of this environment
        [sys.executable, "-m", "puccinialin", "--location", home],
        env={**there, "PATH": environment["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    fetched = version(there)
    if fetching.returncode or fetched is None or fetched < wanted():
        said = fetching.stderr.strip().splitlines() or ["no reason given"]
        errors = [line for line in said if line.startswith("error: ")]
        sys.exit(
            f"Rust can't be fetched ({(errors or said)[-1]}). Install Rust {least} or newer from "
            "https://rustup.rs or from your system's packages, and put cargo on the PATH."
        )
    return there


def with_components(environment: dict[str, str], subcommand: str) -> None:
    """Add to a fetched Rust what it comes without: the formatter and the linter."""
    missing = (
        shutil.which("rustup", path=environment["PATH"])
        and subprocess.run(  # noqa: S603
            ["cargo", subcommand, "--version"],  # noqa: S607
            env=environment,
            capture_output=True,
            check=False,
        ).returncode
    )
    if missing:
        subprocess.run(
            ["rustup", "--quiet", "component", "add", "rustfmt", "clippy"],  # noqa: S607
            env=environment,
            check=True,
        )


def say(line: str) -> None:
    """Print a line to the terminal at once."""
    print(line, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> None:
    """Run a command that finds cargo, and exit as it does."""
    quiet = arguments[:1] == ["--quiet"]
    command = arguments[quiet:]
    here = Path(sys.executable).parent
    environment = {**os.environ, "PATH": os.pathsep.join([str(here), os.environ["PATH"]])}
    if shutil.which("cc", path=environment["PATH"]) is None:
        sys.exit(
            "No C compiler is on the PATH, and Rust links with it. Install gcc or clang "
            "(on Debian and Ubuntu: apt-get install gcc libc6-dev)."
        )
    environment = with_rust(environment)
    # Without it, the build script of PyO3 takes any Python that it finds.
    environment["PYO3_PYTHON"] = sys.executable
    if command[:2] in (["cargo", "fmt"], ["cargo", "clippy"]):
        with_components(environment, command[1])
    if not quiet:
        os.execvpe(command[0], command, environment)  # noqa: S606
    done = subprocess.run(  # noqa: S603
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
