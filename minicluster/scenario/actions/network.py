"""The actions on the network: what is lost, late, held, doubled."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from minicluster.errors import UserError
from minicluster.scenario.actions.action import Action
from minicluster.scenario.actions.arguments import (
    Apis,
    Duration,
    Flag,
    Groups,
    Nodes,
    Probability,
)
from minicluster.scenario.actions.clients_requests import OfClients
from minicluster.values import dataclass

Distribution = Literal["fixed", "uniform", "exponential"]


@dataclass(frozen=True, slots=True)
class Cut(Action):
    """Lose what src sends to dst; in both directions with both, only some APIs with api."""

    src: Nodes
    dst: Nodes
    _: KW_ONLY
    api: Apis | None = None
    both: Flag = False
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class Partition(Action):
    """Lose everything between groups of nodes; one way (earlier to later) if not symmetric."""

    groups: Groups
    _: KW_ONLY
    symmetric: Flag = True
    lasting: Duration | None = None

    @classmethod
    def between(
        cls,
        *each: Nodes,
        groups: Groups | None = None,
        symmetric: bool = True,
        lasting: Duration | None = None,
    ) -> Partition:
        """As the method takes them: each group is an argument, or all are named, as in YAML.

        Errors:  UserError where both are given, or fewer than two groups.
        """
        if each and groups is not None:
            raise UserError("partition: give groups=[…] or each group as an argument, not both")
        return cls(each if groups is None else groups, symmetric=symmetric, lasting=lasting)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Isolate(Action):
    """Lose everything between nodes and all others, in both directions."""

    node: Nodes
    _: KW_ONLY
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class Heal(Action):
    """Remove network faults: all of them, and all answers, or those of some links."""

    src: Nodes | None = None
    dst: Nodes | None = None


@dataclass(frozen=True, slots=True)
class Delay(OfClients):
    """Deliver late what src sends to dst, or responses to clients: minimum plus a draw.

    Arguments:  with src and dst: all messages of the link, or those of ``api``, until it is healed.
                Without both: responses to clients' requests of ``api``, once, ``times`` times or
                all while it is ``lasting`` -> the answer, as of ``Respond``.
    """

    src: Nodes | None = None
    dst: Nodes | None = None
    mean: Duration | None = None
    _: KW_ONLY
    minimum: Duration | None = None
    distribution: Distribution = "exponential"
    api: Apis | None = None

    def __post_init__(self) -> None:
        Action.__post_init__(self)
        if self.mean is None:
            raise UserError("delay: it needs 'mean': a duration such as 10s")
        if (self.src is None) != (self.dst is None):
            raise UserError("delay: a link has src and dst; responses to clients have neither")
        if self.src is None and self.api is None:
            raise UserError("delay: name src and dst, or the api of clients' requests")
        narrow = (
            *("times", "client", "node", "topic", "topic_id", "partitions", "versions"),
            "must_fire",
        )
        for name in narrow if self.src is not None else ():
            if getattr(self, name) not in (None, False):
                raise UserError(f"delay: {name} is of responses to clients, without src and dst")


@dataclass(frozen=True, slots=True)
class Loss(Action):
    """Lose some of what src sends to dst."""

    src: Nodes
    dst: Nodes
    p: Probability
    _: KW_ONLY
    api: Apis | None = None
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class Duplicate(Action):
    """Deliver some of what src sends to dst twice."""

    src: Nodes
    dst: Nodes
    p: Probability
    _: KW_ONLY
    api: Apis | None = None
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class Reorder(Action):
    """Let some of what src sends to dst be overtaken."""

    src: Nodes
    dst: Nodes
    p: Probability
    _: KW_ONLY
    api: Apis | None = None
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class Hold(Action):
    """Keep what src sends to dst until release."""

    src: Nodes
    dst: Nodes
    _: KW_ONLY
    api: Apis | None = None


@dataclass(frozen=True, slots=True)
class Release(Action):
    """Deliver what was held, in its order, and hold no more."""

    src: Nodes | None = None
    dst: Nodes | None = None
    _: KW_ONLY
    api: Apis | None = None


@dataclass(frozen=True, slots=True)
class Record(Action):
    """Keep a copy of each request that src sends to dst, for replay."""

    src: Nodes
    dst: Nodes
    _: KW_ONLY
    api: Apis | None = None


@dataclass(frozen=True, slots=True)
class Replay(Action):
    """Deliver again the requests that were recorded, in their order, and record no more.

    Each comes as a late duplicate: its sender ignores the response.
    """

    src: Nodes | None = None
    dst: Nodes | None = None
    _: KW_ONLY
    api: Apis | None = None
