"""The actions of consumers in groups, of transactional producers, and of both as one."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, Literal

from minicluster.errors import UserError
from minicluster.scenario.actions.action import Action
from minicluster.scenario.actions.arguments import Duration, Rate, Text, TopicName, whole
from minicluster.scenario.checks import limits
from minicluster.values import dataclass

Isolation = Literal["read_uncommitted", "read_committed"]
GroupProtocol = Literal["classic", "consumer"]
End = Literal["commit", "abort", "open"]
Records = Annotated[int, whole(0, limits.RECORDS_MAX)]
Members = Annotated[int, whole(1, limits.MEMBERS_MAX)]
EVERY = Annotated[int, whole(1, limits.RECORDS_MAX)]


@dataclass(frozen=True, slots=True)
class Consume(Action):
    """Consume a topic in a group: a count of records, or in the background.

    With a count, the members leave once they have seen that many together. Without, they stay for
    ``lasting`` or to the end of the run, and the list fills. Each commits what it has read.

    Returns: the records that the members have seen, each with ``value``, ``key``, ``headers``,
             ``timestamp``, ``offset``, ``partition`` and ``topic``.
    Errors:  UserError if fewer records came within the time.
    """

    topic: TopicName
    _: KW_ONLY
    group: Text = "group"
    count: Records | None = None
    isolation: Isolation = "read_uncommitted"
    members: Members = 1
    protocol: GroupProtocol = "classic"
    lasting: Duration | None = None
    within: Duration | None = None

    def __post_init__(self) -> None:
        Action.__post_init__(self)
        if self.count is not None and self.lasting is not None:
            raise UserError("consume: lasting does not go with a count")
        if self.count is None and self.within is not None:
            raise UserError("consume: within needs a count")


@dataclass(frozen=True, slots=True)
class Transaction(Action):
    """Produce records in a transaction and commit or abort it, or many in the background.

    Its records go to the partitions in turn. With a rate, so many transactions begin per second,
    for ``lasting`` or to the end of the run.

    Arguments: count: records of each transaction. end: "open" leaves it as it is. abort_every: each
             so-manyth is aborted. client: names one of several producers of the same transactional
             id, of which each fences the ones before it.
    Returns: the transactions, with their outcomes.
    Errors:  UserError if the transaction has not ended within the time.
    """

    topic: TopicName
    _: KW_ONLY
    transactional_id: Text = "transaction"
    client: Text | None = None
    count: Records = 1
    end: End = "commit"
    rate: Rate | None = None
    abort_every: EVERY | None = None
    lasting: Duration | None = None
    within: Duration | None = None

    def __post_init__(self) -> None:
        Action.__post_init__(self)
        of_a_rate = {"abort_every": self.abort_every, "lasting": self.lasting}
        if self.rate is None:
            for name, value in of_a_rate.items():
                if value is not None:
                    raise UserError(f"transaction: {name} needs a rate: transactions per second")
        elif self.within is not None or self.end != "commit":
            raise UserError("transaction: within and end do not go with a rate")


@dataclass(frozen=True, slots=True)
class Transform(Action):
    """Consume a topic in a group and write each record to another one, exactly once.

    Each member writes what it has read, with its offsets, in transactions of its own, of which each
    ``abort_every``-th is aborted, for ``lasting`` or to the end of the run. It reads with
    read_committed.

    Returns: the records whose transactions are committed; the list fills.
    """

    topic: TopicName
    to: TopicName
    _: KW_ONLY
    group: Text = "transform"
    members: Members = 1
    protocol: GroupProtocol = "classic"
    abort_every: EVERY | None = None
    lasting: Duration | None = None
