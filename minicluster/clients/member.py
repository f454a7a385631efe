"""The base of members of both kinds of groups: what they are of, and their requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minicluster.clients.client import GROUP, Client, TopicPartition
from minicluster.clients.offsets import Membership
from minicluster.protocol import ErrorCode

SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 20_000

OnAssigned = Callable[[Membership, tuple[TopicPartition, ...], int], None]


class Member:
    """One member.

    Shapes:  on_assigned takes the membership and all partitions of it; on_revoked, before a member
             gives up partitions, takes a function that continues with that.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        topics: Iterable[str],
        *,
        on_assigned: OnAssigned,
        on_revoked: Callable[[Callable[[int], None], int], None],
    ) -> None:
        self._client = client
        self._group = group
        self._topics = tuple(topics)
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked

    @property
    def membership(self) -> Membership:
        """The member in its generation or epoch."""
        raise NotImplementedError

    def join(self, now_ms: int) -> None:
        """Join the group; the leaders of its topics are known by now."""
        raise NotImplementedError

    def on_rejected(self, error: ErrorCode, now_ms: int) -> None:
        """The coordinator has rejected a heartbeat or a commit: join again."""
        raise NotImplementedError

    def leave(self, then: Callable[[int], None], now_ms: int) -> None:
        """Leave the group; what comes of it makes no difference."""
        raise NotImplementedError

    def _request(
        self,
        request: Any,
        version: int,
        on_end: Callable[[Any | None, int], None],
        now_ms: int,
        timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        client = self._client
        client.with_coordinator(
            self._group,
            GROUP,
            lambda node, _: client.send(node, request, version, on_end, timeout_ms),
            now_ms,
        )
