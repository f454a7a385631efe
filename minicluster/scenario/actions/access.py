"""The actions on ACLs: what a user may do, may not, and no longer does by an ACL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Annotated

from minicluster.errors import UserError, instead
from minicluster.scenario.actions.action import ADMIN_WITHIN, Refusable
from minicluster.scenario.actions.arguments import (
    NAMES,
    Duration,
    Flag,
    Text,
    TopicName,
)
from minicluster.security.acls import CLUSTER_NAME, Operation, ResourceType
from minicluster.values import dataclass

Operations = Annotated[str | Sequence[str], NAMES]
_OPERATIONS = tuple(
    operation.name for operation in Operation if operation.name not in ("UNKNOWN", "ANY")
)


@dataclass(frozen=True, slots=True)
class OfUser(Refusable):
    """The base of the actions on the ACLs of a user for one resource."""

    user: Text
    operations: Operations
    _: KW_ONLY
    topic: TopicName | None = None
    group: Text | None = None
    transactional_id: Text | None = None
    cluster: Flag = False
    prefixed: Flag = False
    host: Text = "*"
    within: Duration = ADMIN_WITHIN

    def __post_init__(self) -> None:
        Refusable.__post_init__(self)
        for word in self.operations:
            if word.upper() not in _OPERATIONS:
                hint = instead(word.upper(), _OPERATIONS)
                raise UserError(f"{self.method}: unknown operation {word!r}; {hint}")
        if len(self._named()) != 1:
            raise UserError(
                f"{self.method}: name one resource: topic, group, transactional_id or cluster=True"
            )

    @property
    def resource(self) -> tuple[ResourceType, str]:
        """The type and the name of the resource, or of those that the name begins."""
        return self._named()[0]

    @property
    def principal(self) -> str:
        """As ACLs have it: ``alice`` is ``User:alice``."""
        return self.user if ":" in self.user else f"User:{self.user}"

    def of_operations(self) -> tuple[Operation, ...]:
        """The operations by their words."""
        return tuple(Operation[word.upper()] for word in self.operations)

    def _named(self) -> list[tuple[ResourceType, str]]:
        names = (
            (ResourceType.TOPIC, self.topic),
            (ResourceType.GROUP, self.group),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_id),
            (ResourceType.CLUSTER, CLUSTER_NAME if self.cluster else None),
        )
        return [(resource_type, str(name)) for resource_type, name in names if name is not None]


@dataclass(frozen=True, slots=True)
class Grant(OfUser):
    """Allow a user operations on a topic, a group, a transactional id or the cluster.

    The ACL is enforced by every running node once the call is over.

    Arguments:  user: ``alice`` or ``User:alice``; ``*`` is everybody. operations: READ, WRITE, ALL,
                …, or a list. topic, group, transactional_id: a name; ``*`` are all. prefixed: those
                that the name begins.
    Errors:  UserError unless one resource is named; RequestRejected, also without an authorizer;
             NoResponse.
    """


@dataclass(frozen=True, slots=True)
class Deny(OfUser):
    """Deny a user operations on a resource, whatever else allows them.

    Arguments:  as those of ``grant``.
    Errors:  as ``grant``.
    """


@dataclass(frozen=True, slots=True)
class Revoke(OfUser):
    """Remove the ACLs of a user for operations on a resource, grants and denials.

    Arguments:  as those of ``grant``.
    Errors:  as ``grant``; whatever is not there is left alone.
    """
