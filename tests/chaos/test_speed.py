"""How long frames take on a slow link: each its length over the bandwidth, and the delay."""

import asyncio
import struct
from itertools import pairwise
from time import monotonic
from typing import Final

import pytest

from chaos.link import HOST, MOST_HELD, Link
from chaos.speed import UNHINDERED, Line, Speed

MEGABYTE: Final = 1 << 20


def frame(size: int) -> bytes:
    """Give an answer of so many bytes."""
    return struct.pack(">ii", size - 4, 7).ljust(size, b"x")


def test_a_frame_takes_its_length_over_the_bandwidth_and_the_delay() -> None:
    line, speed = Line(), Speed(delay=0.05, bytes_per_second=1_000)
    assert line.arrival(10.0, 500, speed) == pytest.approx(10.55)
    # The second waits until the first has gone out; the delay of both overlaps.
    assert line.arrival(10.1, 200, speed) == pytest.approx(10.75)
    assert line.arrival(20.0, 200, speed) == pytest.approx(20.25)


def test_idle_time_is_not_saved_up() -> None:
    line, speed = Line(), Speed(bytes_per_second=1_000)
    arrivals = [line.arrival(100.0, 1_000, speed) for _ in range(4)]
    assert arrivals == pytest.approx([101, 102, 103, 104])


def test_a_delay_alone_holds_nothing_up() -> None:
    line, speed = Line(), Speed(delay=0.05)
    assert [line.arrival(1.0, MEGABYTE, speed) for _ in range(3)] == pytest.approx([1.05] * 3)


@pytest.mark.parametrize("wrong", [{"delay": -1.0}, {"bytes_per_second": 0.0}])
def test_no_link_is_slower_than_never(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no link has"):
        Speed(**wrong)


async def through(speed: Speed, frames: list[bytes]) -> tuple[list[float], int]:
    """Have a broker answer with frames at once; give when each came, and the most held."""
    loop = asyncio.get_running_loop()
    links: set[Link] = set()
    most = 0
    taken, hung_up = asyncio.Event(), asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for one in frames:
            writer.write(one)
            await writer.drain()
        await taken.wait()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    broker = await asyncio.start_server(answer, HOST, 0)
    reach = broker.sockets[0].getsockname()[1]
    proxy = await loop.create_server(
        lambda: Link(lambda _: None, loop, reach, links, lambda: speed).client, HOST, 0
    )
    began = monotonic()
    reader, writer = await asyncio.open_connection(HOST, proxy.sockets[0].getsockname()[1])
    came = []
    for one in frames:
        assert await reader.readexactly(len(one)) == one
        came.append(monotonic() - began)
        most = max(most, *(link.held for link in links))
    assert len(links) == 1
    taken.set()
    writer.close()
    await writer.wait_closed()
    broker.close()
    proxy.close()
    await hung_up.wait()
    return came, most


def test_a_slow_link_delivers_in_order_no_faster_than_it_is() -> None:
    frames = [frame(20_000)] * 10
    came, _ = asyncio.run(through(Speed(delay=0.05, bytes_per_second=400_000), frames))
    assert came[0] >= 0.05 + 0.05
    assert all(later - earlier > 0.02 for earlier, later in pairwise(came))
    assert came[-1] >= 0.05 + 10 * 0.05


def test_who_sends_faster_than_the_link_is_held_back() -> None:
    size = MOST_HELD // 2
    _, most = asyncio.run(through(Speed(bytes_per_second=40 * size), [frame(size)] * 24))
    # What was read at once before the sender was held back comes on top.
    assert size <= most < MOST_HELD + 4 * size


def test_an_unhindered_link_holds_nothing() -> None:
    came, most = asyncio.run(through(UNHINDERED, [frame(MEGABYTE)] * 5))
    assert most == 0
    assert came[-1] < 5.0
