"""The ACLs of the committed log, decided a second time, by the words of KIP-11 and KIP-290.

The node's own authorizer is what is judged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.protocol.records import AccessControlEntryRecord
from minicluster.verify.histories.timeline import Timeline

TOPIC, GROUP, CLUSTER = "topic", "group", "cluster"
TRANSACTIONAL_ID = "transactional id"
CLUSTER_NAME = "kafka-cluster"
_TYPES = {TOPIC: 2, GROUP: 3, CLUSTER: 4, TRANSACTIONAL_ID: 5}
_OPERATIONS = {
    "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8,
    "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11,
}  # fmt: skip
_LITERAL, _PREFIXED = 3, 4
_DENY, _ALLOW = 2, 3
_IMPLIED_BY = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}
_EVERYBODY, _EVERY = "User:*", "*"


class Acls:
    """The ACLs at any offset.

    Shapes:  config: of the cluster. is_on: it has an authorizer.
    Units:   first: the first offset at which the log, as far as it is kept, can be folded.
    """

    def __init__(self, config: Mapping[str, Any], log: Timeline, first: int) -> None:
        named = str(config.get("super.users", ""))
        self._super_users = frozenset(filter(None, (name.strip() for name in named.split(";"))))
        everyone = config.get("allow.everyone.if.no.acl.found", "false")
        self._everyone = str(everyone).lower() == "true"
        self.is_on = bool(config.get("authorizer.class.name"))
        self._first, self._states = first, log.acls
        self._offsets = list(log.acls)

    def allow(
        self, offset: int, principal: str, host: str, right: str, kind: str, name: str
    ) -> bool | None:
        """Whether the image at an offset gives somebody a right; None before the first image."""
        if offset < self._first:
            return None
        if principal in self._super_users:
            return True
        place = bisect_right(self._offsets, offset)
        acls = self._states[self._offsets[place - 1]] if place else ()
        of_resource = [acl for acl in acls if _is_about(acl, kind, name)]
        mine = [
            acl
            for acl in of_resource
            if acl.principal in (principal, _EVERYBODY) and acl.host in (host, _EVERY)
        ]
        asked = {_OPERATIONS[right], _OPERATIONS["ALL"]}
        if _have(mine, _DENY, asked):
            return False
        implied = {_OPERATIONS[other] for other in _IMPLIED_BY.get(right, ())}
        return _have(mine, _ALLOW, asked | implied) or (not of_resource and self._everyone)


def _have(acls: Iterable[AccessControlEntryRecord], permission: int, asked: set[int]) -> bool:
    return any(acl.permission_type == permission and acl.operation in asked for acl in acls)


def _is_about(acl: AccessControlEntryRecord, kind: str, name: str) -> bool:
    if acl.resource_type != _TYPES[kind]:
        return False
    if acl.pattern_type == _PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.pattern_type == _LITERAL and acl.resource_name in (name, _EVERY)
