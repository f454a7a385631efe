"""ElectLeaders as its broker sees it: the partitions of all, and the leaders that come too late."""

from __future__ import annotations

from typing import Any

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ElectLeadersResponse
from minicluster.zookeeper.broker.delayed_elections import (
    all_partitions,
    timed_out,
    without_needless,
)
from minicluster.zookeeper.broker.metadata_cache import MetadataCache
from tests.transcripts.zookeeper.forms import read_message
from tests.transcripts.zookeeper.recording import Recorded, Recording


def elections_of_all(recording: Recording) -> dict[int, Any]:
    """The partitions that the broker shows, for each request that names none, by its number."""
    events: list[tuple[int, int, int, Any]] = []
    for broker, starts in recording.starts.items():
        events += [(ms, 0, 0, broker) for ms in starts]
    for one in recording.requests:
        if one.api == "UPDATE_METADATA" and (one.response or {}).get("errorCode") == ErrorCode.NONE:
            events.append((one.ms, 1, one.number, one))
        elif one.api == "ELECT_LEADERS" and one.request["topicPartitions"] is None:
            events.append((one.received_ms, 2, one.number, one))
    caches: dict[int, MetadataCache] = {}
    named = {}
    for _, kind, number, event in sorted(events, key=lambda one: one[:3]):
        if kind == 0:
            caches[event] = MetadataCache()
        elif kind == 1:
            request = read_message(event.api, "Request", event.version, event.request)
            caches.setdefault(event.broker, MetadataCache()).update(request)
        else:
            cache = caches.setdefault(event.broker, MetadataCache())
            named[number] = all_partitions(cache.topics)
    return named


def elected_in_time(
    recorded: Recorded, given: ElectLeadersResponse, wanted: ElectLeadersResponse
) -> ElectLeadersResponse:
    """The response when its time has passed, without the leaders that the recording has in time."""
    late = {
        TopicPartition(topic.topic, result.partition_id)
        for topic in wanted.replica_election_results
        for result in topic.partition_result
        if result.error_code == ErrorCode.REQUEST_TIMED_OUT
    }
    elected = {
        TopicPartition(topic.topic, result.partition_id)
        for topic in given.replica_election_results
        for result in topic.partition_result
        if result.error_code == ErrorCode.NONE
    }
    if recorded.ms - recorded.received_ms >= int(recorded.request["timeoutMs"]):
        given = timed_out(given, late & elected)
    return without_needless(given) if recorded.request["topicPartitions"] is None else given
