"""Which requests of clients an action is for, and how often it acts on them."""

from __future__ import annotations

from typing import Annotated

from minicluster.scenario.actions.action import Action
from minicluster.scenario.actions.arguments import (
    ClientId,
    Duration,
    Flag,
    Nodes,
    Partitions,
    TopicId,
    TopicName,
    Versions,
    whole,
)
from minicluster.scenario.checks import limits
from minicluster.values import dataclass

Times = Annotated[int, whole(1, limits.RECORDS_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfClients(Action):
    """The base of the actions on requests of clients: each argument leaves some of them alone.

    Arguments: must_fire: the run fails if none of them has come by its end.
    """

    times: Times | None = None
    client: ClientId | None = None
    node: Nodes | None = None
    topic: TopicName | None = None
    topic_id: TopicId | None = None
    partitions: Partitions | None = None
    versions: Versions | None = None
    lasting: Duration | None = None
    must_fire: Flag = False
