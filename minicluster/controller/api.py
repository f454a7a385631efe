"""An API of a controller: what its screening and its decision get and give.

Source:  ControllerApis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from minicluster.controller.decision import Decision, KRaftVersion
from minicluster.controller.mutation_quotas import MutationQuota
from minicluster.controller.placement import Draw
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import Message
from minicluster.rules import Rules
from minicluster.security.acls import Operation
from minicluster.security.screening import Access
from minicluster.values import Value


class Call(Value, kw_only=True):
    """A request with everything that its decision may need.

    Shapes:  state includes what is made and not yet committed; committed does not.
    Units:   next_offset is the offset of the decision's first record.
    """

    state: ClusterState
    request: Any
    version: int
    next_offset: int
    kraft: KRaftVersion
    forwarded: bool
    draw: Draw
    new_topic_id: Callable[[], UUID]
    committed: MetadataImage
    quota: MutationQuota
    access: Access
    now_ms: int

    @property
    def plain(self) -> tuple[ClusterState, Any, int, int]:
        """The arguments that every operation takes."""
        return self.state, self.request, self.version, self.now_ms


class Screened(Value):
    """A request without what any controller rejects of it, before the active one decides.

    Shapes:  complete makes the response to the whole request from the response to what is left.
    """

    request: Any
    complete: Callable[[Any], Any]


def is_late(request: Any) -> bool:
    """True for a request whose own deadline has passed when it comes.

    Source:  ControllerRequestContext.requestTimeoutMsToDeadlineNs, KafkaEventQueue.
    """
    return bool(request.timeout_ms <= 0)


class ControllerApi(Value):
    """The way in which one request is served.

    Shapes:  right: on the cluster, without which all of it is rejected, first of all; the rights on
             topics are a part of the screen. lowest_version: of those
             that the release serves. screen: the checks that any controller does first. items: the
             fields that list what the request is about; where nothing is left any controller
             responds, at once, with ``nothing``. has_deadline: its timeout_ms is a deadline, and
             one that is late is not decided (REQUEST_TIMED_OUT). reads: any controller responds,
             from what is committed. quota_strict_since: the version from which the quota on
             partitions rejects what exceeds it (KIP-599); before, it is only reported.
    """

    request: type[Message]
    decide: Callable[[Call], Decision]
    right: Operation | None = None
    lowest_version: Callable[[Rules], int] = lambda rules: 0
    screen: Callable[[Call], Screened] | None = None
    items: tuple[str, ...] = ()
    nothing: Any = None
    has_deadline: bool = False
    reads: bool = False
    quota_strict_since: int | None = None

    def is_empty(self, request: Any) -> bool:
        """True for a request that lists nothing to do."""
        return bool(self.items) and all(getattr(request, items) == () for items in self.items)
