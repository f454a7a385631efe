"""FindCoordinator (10): the broker that coordinates a group or a transactional id.

Versions:  0-6. 1: transactional ids, and an error message. 2: as 1. 3: flexible. 4: several keys
           (KIP-699). 5: for transactions that verify (KIP-890). 6: share groups (KIP-932).
Source:    KafkaApis.handleFindCoordinatorRequest, getCoordinator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from minicluster.metadata.image.cluster import Endpoint
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, partition_of
from minicluster.protocol.uuids import parse_uuid
from minicluster.values import Value, replace

GROUP, TRANSACTION, SHARE = 0, 1, 2
_SEVERAL_KEYS_FROM = 4
_SHARE_FROM = 6
_TOPICS = {GROUP: GROUP_METADATA_TOPIC, TRANSACTION: TRANSACTION_STATE_TOPIC}
_NO_NODE = -1

Coordinator = FindCoordinatorResponse.Coordinator


def find_coordinator(
    state: ApiState, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    """The coordinator of each key.

    Errors:  COORDINATOR_NOT_AVAILABLE while the internal topic or a leader of its partition is
             missing; INVALID_REQUEST for an unknown type of key.
    """
    if version >= _SEVERAL_KEYS_FROM:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=tuple(_coordinator(state, request.key_type, key, version) for key in keys)
        )
    coordinator = _coordinator(state, request.key_type, request.key, version)
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=_text(coordinator.error_code) if version >= 1 else None,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def missing_internal_topic(state: ApiState, request: FindCoordinatorRequest) -> str | None:
    """The internal topic that the request needs and that is not there yet."""
    name = _TOPICS.get(request.key_type)
    return name if name is not None and state.image.topics.named(name) is None else None


def _coordinator(state: ApiState, key_type: int, key: str, version: int) -> Coordinator:
    topic_name = _TOPICS.get(key_type)
    if topic_name is None:
        available_later = key_type == SHARE and version >= _SHARE_FROM and _is_share_key(key)
        if available_later:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        rejected = _none(key, ErrorCode.INVALID_REQUEST)
        # A type that is known is rejected key by key, which has no text.
        has_text = key_type != SHARE or version < _SEVERAL_KEYS_FROM
        return rejected if has_text else replace(rejected, error_message="")
    topic = state.image.topics.named(topic_name)
    if topic is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions.get(partition_of(key, state.counts_at_start[topic_name]))
    endpoint = None if partition is None else _alive_endpoint(state, partition.leader)
    if partition is None or endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(
        key=key,
        node_id=partition.leader,
        host=endpoint.host,
        port=endpoint.port,
        error_code=ErrorCode.NONE,
        error_message="",
    )


def _alive_endpoint(state: ApiState, broker_id: int) -> Endpoint | None:
    broker = state.image.cluster.broker(broker_id)
    return None if broker is None or broker.fenced else state.endpoint(broker)


def _is_share_key(key: str) -> bool:
    """The key of a partition of a share group: group, topic id and partition.

    Source:  SharePartitionKey.getInstance.
    """
    *group_id, topic_id, partition = ("", "", *key.rstrip(":").split(":"))
    if not ":".join(group_id).strip(": "):  # a group id may have colons
        return False
    try:
        parse_uuid(topic_id)
    except ValueError:
        return False
    return re.fullmatch(r"[+-]?[0-9]{1,10}", partition) is not None


def _none(key: str, error: ErrorCode) -> Coordinator:
    # Kafka gives no text for what will pass.
    unavailable = error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    message = "" if unavailable else TEXTS[error]
    return Coordinator(
        key=key, node_id=_NO_NODE, host="", port=_NO_NODE, error_code=error, error_message=message
    )


def _text(error: int) -> str:
    return "NONE" if error == ErrorCode.NONE else TEXTS[error]


# FindCoordinator requests that wait while the internal topic is made.
#
# Kafka responds COORDINATOR_NOT_AVAILABLE at once, and clients come back after a back-off of up to
# a second, in which the topic has long been made. Here the first response comes with the topic, as
# if the network had been slow. After a limit it is Kafka's.


TIMER = "coordinator-lookups"
LIMIT_MS = 1_000

Find = Callable[[FindCoordinatorRequest, int], Any]
"""The response of this moment to a request in a version."""


class _Lookup(Value):
    token: Any
    request: FindCoordinatorRequest
    version: int
    topic: str
    until_ms: int


class CoordinatorLookups:
    """The requests that wait, oldest first."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._waiting: list[_Lookup] = []

    def wait(
        self, token: Any, request: FindCoordinatorRequest, version: int, topic: str, now_ms: int
    ) -> list[Effect]:
        """Hold a request until its topic is there."""
        is_first = not self._waiting
        until_ms = now_ms + LIMIT_MS
        self._waiting.append(_Lookup(token, request, version, topic, until_ms))
        return [SetTimer(TIMER, until_ms)] if is_first else []

    def respond(self, is_over: Callable[[str], bool]) -> list[Effect]:
        """Respond to those whose topic has been made, or will not be made."""
        over = [each for each in self._waiting if is_over(each.topic)]
        return self._complete(over)

    def on_timer(self, now_ms: int) -> list[Effect]:
        """Respond to those that have waited long enough."""
        effects = self._complete([each for each in self._waiting if each.until_ms <= now_ms])
        if self._waiting:
            effects.append(SetTimer(TIMER, self._waiting[0].until_ms))
        return effects

    def _complete(self, over: list[_Lookup]) -> list[Effect]:
        if not over:
            return []
        self._waiting = [each for each in self._waiting if each not in over]
        effects: list[Effect] = [
            Respond(each.token, self._find(each.request, each.version)) for each in over
        ]
        if not self._waiting:
            effects.append(CancelTimer(TIMER))
        return effects
