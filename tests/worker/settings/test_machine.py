"""The memory that a process may use: limits of cgroups of both versions, in containers or not."""

import os
from pathlib import Path

import pytest

from worker.settings.memory import machine

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MIB = 1 << 20
UNLIMITED = str(0x7FFFFFFFFFFFF000)
"""What version 1 has for no limit."""


def files(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("texts", "limit"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{64 * MIB}\n"}, 64),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/memory.max": f"{64 * MIB}\n",
                "sys/fs/cgroup/a/b/memory.max": "max\n",
            },
            64,
        ),
        (
            {
                "proc/self/cgroup": "0::/a\n",
                "sys/fs/cgroup/a/memory.max": f"{64 * MIB}\n",
                "sys/fs/cgroup/a/memory.high": f"{48 * MIB}\n",
            },
            48,
        ),
        (
            {
                "proc/self/cgroup": "8:pids:/\n4:memory:/a\n0::/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED,
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": f"{32 * MIB}\n",
            },
            32,
        ),
        (
            {  # A container that sees its cgroup at the root, under the host's path.
                "proc/self/cgroup": "5:cpu,memory:/docker/0123\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{32 * MIB}\n",
            },
            32,
        ),
        ({"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory.max": f"{MIB}\n"}, None),
        ({"proc/self/cgroup": "0::/../..\n", "sys/fs/cgroup/memory.max": f"{MIB}\n"}, 1),
        ({"proc/self/cgroup": "nonsense\n\n", "sys/fs/cgroup/memory.max": f"{MIB}\n"}, None),
    ],
)
def test_the_lowest_limit_counts(tmp_path: Path, texts: dict[str, str], limit: int | None) -> None:
    assert machine(files(tmp_path, texts)) == (MEMORY, limit and limit * MIB)


def test_a_limit_above_the_memory_is_none(tmp_path: Path) -> None:
    texts = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": str(MEMORY)}
    assert machine(files(tmp_path, texts)).limit is None
    texts["sys/fs/cgroup/memory.max"] = str(MEMORY - 1)
    assert machine(files(tmp_path, texts)).limit == MEMORY - 1
