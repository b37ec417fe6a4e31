"""A client that doesn't close is left behind."""

from threading import Event

from tests.support.clients import close


class _Client:
    def __init__(self) -> None:
        self.may_close, self.closed = Event(), Event()

    def close(self) -> None:
        """Hang until it may."""
        if self.may_close.wait(10):
            self.closed.set()


def test_a_client_is_closed_and_one_that_hangs_is_left() -> None:
    client = _Client()
    close(client, 0.01)
    assert not client.closed.is_set()
    client.may_close.set()
    close(client)
    assert client.closed.is_set()
