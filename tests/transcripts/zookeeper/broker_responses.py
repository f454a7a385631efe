"""The responses of each broker to control requests, of the controller and of the script.

A broker's log directories are not in a recording: which replicas are lost is taken from the first
KAFKA_STORAGE_ERROR of each, until the broker is started again. Whether a broker that
was busy with a request when its session ended had read the configs of new topics by then is taken
from the response as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)
from minicluster.zookeeper.broker.control_requests import ControlRequests
from minicluster.zookeeper.controller.settings import ReleaseRules
from minicluster.zookeeper.znodes import paths
from tests.transcripts.report import AGREE, DIFFER, Outcome
from tests.transcripts.zookeeper.forms import comparable, read_message
from tests.transcripts.zookeeper.recording import CONTROL_APIS, Recorded, Recording

FAILED = ErrorCode.UNKNOWN_SERVER_ERROR


def compare_broker_responses(recording: Recording) -> Iterator[Outcome]:
    """One outcome for each response to LeaderAndIsr, StopReplica and UpdateMetadata."""
    events: list[tuple[int, int, int, Any]] = []
    events += [(ms, 0, 0, broker) for broker, starts in recording.starts.items() for ms in starts]
    for transaction in recording.transactions:
        for entry in transaction.entries:
            if entry.op == "create" and entry.path.startswith(f"{paths.BROKER_IDS}/"):
                registered = (int(entry.path.rpartition("/")[2]), transaction.zxid)
                events.append((transaction.ms, 1, transaction.zxid, registered))
    for one in recording.requests:
        if one.api in CONTROL_APIS and one.response is not None:
            events.append((min(one.ms, _newer_ms(recording, one)), 2, one.number, one))
    without: dict[int, list[tuple[int, int]]] = {}  # from when to when brokers had no session
    ended: dict[int, int] = {}
    for transaction in recording.transactions:
        broker = transaction.broker
        if broker is not None and transaction.kind == "close_session":
            ended[broker] = transaction.ms
        elif transaction.entries[0].path == f"{paths.BROKER_IDS}/{broker}" and broker in ended:
            without.setdefault(broker, []).append((ended.pop(broker), transaction.ms))
    brokers: dict[int, tuple[ControlRequests, set[TopicPartition]]] = {}
    for _, _, _, event in sorted(events, key=lambda one: one[:3]):
        if isinstance(event, int):
            release = ReleaseRules.of(recording.release_of(event))
            brokers[event] = (ControlRequests(event, release), set())
        elif isinstance(event, tuple):
            broker, epoch = event
            if broker in brokers:
                brokers[broker][0].broker_epoch = epoch
        elif event.broker in brokers:
            expired = any(
                start_ms <= event.ms and event.received_ms < end_ms
                for start_ms, end_ms in without.get(event.broker, ())
            )
            yield _compare(recording, event, *brokers[event.broker], expired=expired)


def _newer_ms(recording: Recording, one: Recorded) -> int:
    """When the broker took a newer controller's request: not before an older one's that it took."""
    if (one.response or {}).get("errorCode") != ErrorCode.NONE or one.controller_epoch is None:
        return one.ms
    newer = (
        other.ms
        for other in recording.requests
        if (other.broker, other.api in CONTROL_APIS) == (one.broker, True)
        and one.received_ms <= other.ms <= one.ms
        and (other.controller_epoch or 0) > one.controller_epoch
    )
    return min(newer, default=one.ms + 1) - 1


def _compare(
    recording: Recording,
    one: Recorded,
    broker: ControlRequests,
    lost: set[TopicPartition],
    *,
    expired: bool,
) -> Outcome:
    request = read_message(one.api, "Request", one.version, one.request)
    assert one.response is not None
    wanted = read_message(one.api, "Response", one.version, one.response)
    lost |= _lost(request, wanted)
    given: Any
    match request:
        case LeaderAndIsrRequest() if expired and wanted.error_code == FAILED:
            given = broker.leader_and_isr_failed(request, one.version)
        case LeaderAndIsrRequest():
            given = broker.leader_and_isr(request, one.version, lost.__contains__)
        case StopReplicaRequest():
            given, _ = broker.stop_replica(request, lost.__contains__)
        case _:
            given = broker.update_metadata(request)
    ours, theirs = comparable(given, one.version), comparable(wanted, one.version)
    kind = "probe" if one.is_probe else "answered"
    detail = f"  {one.request}\n  recorded {theirs}\n  ours     {ours}"
    where = f"{recording.path.name} request {one.number}"
    return Outcome(f"{kind} {one.api}", AGREE if ours == theirs else DIFFER, where, detail)


def _lost(request: Any, response: Any) -> set[TopicPartition]:
    storage = ErrorCode.KAFKA_STORAGE_ERROR
    match response:
        case StopReplicaResponse():
            return {
                TopicPartition(error.topic_name, error.partition_index)
                for error in response.partition_errors
                if error.error_code == storage
            }
        case LeaderAndIsrResponse():
            names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
            flat = {
                TopicPartition(error.topic_name, error.partition_index)
                for error in response.partition_errors
                if error.error_code == storage
            }
            return flat | {
                TopicPartition(names[topic.topic_id], error.partition_index)
                for topic in response.topics
                for error in topic.partition_errors
                if error.error_code == storage
            }
    return set()
