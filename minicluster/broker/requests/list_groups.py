"""ListGroups (16): none, since no broker here coordinates groups.

Versions:  0-5; the version decides nothing.
"""

from __future__ import annotations

from minicluster.broker.state.api_state import ApiState
from minicluster.protocol.messages import ListGroupsRequest, ListGroupsResponse


def list_groups(
    state: ApiState, request: ListGroupsRequest, version: int, now_ms: int
) -> ListGroupsResponse:
    """No group."""
    return ListGroupsResponse()
