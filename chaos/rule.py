"""Which requests a proxy loses, delays or cuts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from chaos.wire import Api, Header

Act = Literal["delay", "drop", "cut", "late", "alone"]
Of = Literal["request", "response"]


@dataclass(eq=False)
class Rule:
    """What happens to which requests.

    Of a ``response`` that is dropped or cut, the request has been executed; of a
    ``request`` it has not. ``cut`` ends the connection, ``drop`` is silent, and ``delay``
    holds up everything behind it, as TCP would. ``late`` (of a request) ends the client's
    connection at once, and delivers the request later: it was still under way. ``alone`` (of
    a response with metadata) takes all brokers out of it.
    """

    apis: frozenset[Api]
    act: Act
    of: Of
    seconds: float = 0.0
    """How long a delay is, or how late is late."""
    client: str = ""
    """Part of the client ids that are meant."""
    share: float = 1.0
    """Of the requests that fit, how many are hit; drawn from ``seed``."""
    limit: int | None = None
    """How many are hit at most."""
    seed: int = 0
    on_hit: Callable[[Header], None] | None = None
    """Called in the proxy's thread, before anything is done."""
    hits: int = 0
    _random: Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Seed.

        Raises:
            ValueError: an answer can't be late for who has hung up, or only answers with
                metadata list brokers.
        """
        if self.act == "alone" and (self.of != "response" or self.apis != {Api.METADATA}):
            raise ValueError("only responses with metadata list brokers")
        if (self.act, self.of) == ("late", "response"):
            raise ValueError("only a request can be late")
        self._random = Random(self.seed)

    def meets(self, header: Header) -> bool:
        """Tell whether it applies to a request, which counts as a hit then."""
        if header.api not in self.apis or self.client not in header.client:
            return False
        if self.limit is not None and self.hits >= self.limit:
            return False
        if self._random.random() >= self.share:
            return False
        self.hits += 1
        if self.on_hit is not None:
            self.on_hit(header)
        return True
