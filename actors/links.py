"""The links of the network: packets in flight, and the conditions that disturb them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct, field

from minicluster.actors.exchange import Exchange, Substitute
from minicluster.actors.runtime import chance
from minicluster.errors import UserError
from minicluster.values import Value

Kind = Literal["cut", "delay", "loss", "duplicate", "reorder", "hold", "record"]
Distribution = Literal["fixed", "uniform", "exponential"]

DRAWS_PER_PACKET = 4  # each thing that chance decides has a draw of its own
# Of EXTRA each condition of a link has a draw.
LATENCY, DUPLICATE_LATENCY, REORDER, EXTRA = range(DRAWS_PER_PACKET)
PEER_LINKS_MAX = 10_000  # without a disturbance
RECORDED_MAX = 1_000  # requests of one condition


class Packet(Struct, eq=False):
    """A request or a response in flight."""

    exchange: Exchange
    body: Any
    is_response: bool
    complete: Callable[[Any], Any] | None = None  # the response to what is left of it
    substitute: Substitute | None = None  # which a response is, in place of its node's
    epoch: int = 0
    link: Link | None = None

    def copy(self) -> Packet:
        """The same packet, to be delivered once more."""
        copied = Packet(self.exchange, self.body, self.is_response)
        copied.link = self.link
        return copied

    @property
    def src(self) -> int:
        """The node that sent this packet: of a response, the receiver of the request."""
        return self.exchange.dst if self.is_response else self.exchange.src

    @property
    def dst(self) -> int:
        """The node that this packet goes to."""
        return self.exchange.src if self.is_response else self.exchange.dst

    @property
    def api(self) -> str:
        """The API's name, such as ``AlterPartition``."""
        return self.exchange.api

    @property
    def version(self) -> int:
        """The version of the request and of its response."""
        return self.exchange.version

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "request"
        return f"<{kind} {self.exchange} {self.body!r}>"


class Condition(Value, kw_only=True, eq=False):
    """A disturbance of the packets of one link, until it is lifted.

    Units:   probability 0..1; mean_ms and min_ms milliseconds.
    """

    kind: Kind
    src: int
    dst: int
    apis: tuple[str, ...] = ()  # none: all
    probability: float = 1.0
    mean_ms: int = 0
    min_ms: int = 0
    distribution: Distribution = "fixed"
    held: list[Packet] = field(default_factory=list)

    def covers(self, api: str) -> bool:
        return not self.apis or api in self.apis

    def delay_ms(self, fraction: float) -> int:
        """One draw of the delay."""
        over_ms = max(0, self.mean_ms - self.min_ms)
        match self.distribution:
            case "fixed":
                return max(self.mean_ms, self.min_ms)
            case "uniform":
                return self.min_ms + round(2 * over_ms * fraction)
            case "exponential":
                return self.min_ms + round(-over_ms * math.log(1.0 - fraction))
        raise UserError(f"delay: {self.distribution!r} is not a distribution")


class Link:
    """One direction between two nodes."""

    __slots__ = ("arrivals", "conditions", "count", "epoch", "key", "latencies")

    def __init__(self, key: int) -> None:
        self.key = key
        self.latencies = chance.draws(key, DRAWS_PER_PACKET + LATENCY, DRAWS_PER_PACKET)
        self.count = 0  # packets sent so far
        self.epoch = 0  # packets of an older epoch are lost
        self.arrivals: dict[str, int] = {}  # the latest arrival of each API
        self.conditions: list[Condition] = []


class Links:
    """The links of a network.

    Peers choose their ids, as clients and as replicas. The links that only their packets have
    used are therefore bounded: the one used longest ago is forgotten, unless it is disturbed.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._links: dict[tuple[int, int], Link] = {}
        self._of_peers = OrderedDict[tuple[int, int], None]()  # the one used longest ago first

    def __len__(self) -> int:
        return len(self._links)

    def get(self, src: int, dst: int) -> Link | None:
        return self._links.get((src, dst))

    def between(self, src: int, dst: int) -> Link:
        """The link between two nodes."""
        link = self._links.get((src, dst))
        if link is None:
            link = Link(chance.key(self._seed, f"link/{src}>{dst}"))
            self._links[src, dst] = link
        return link

    def of_peer(self, src: int, dst: int) -> Link:
        """The link of a packet that belongs to a peer's connection."""
        key = src, dst
        if key in self._of_peers:
            self._of_peers.move_to_end(key)
        elif key not in self._links:  # else of nodes, or disturbed before its peer came
            if len(self._of_peers) >= PEER_LINKS_MAX:
                self._forget_one()
            self._of_peers[key] = None
        return self.between(src, dst)

    def to(self, dst: int) -> list[Link]:
        """The links to a node."""
        return [link for (_, target), link in self._links.items() if target == dst]

    def _forget_one(self) -> None:
        for _ in range(len(self._of_peers)):
            key, _ = self._of_peers.popitem(last=False)
            if not self._links[key].conditions:
                del self._links[key]
                return
            self._of_peers[key] = None
