"""The requests of a fetcher to its leader, and their responses by partition.

Versions: Fetch v4 to v17: in a session from v7 on (KIP-227); topics by id from v13 on; replica id
          and broker epoch in a tagged field from v15 on (KIP-903). ListOffsets and
          OffsetForLeaderEpoch have topics by name.
Source:   RemoteLeaderEndPoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from minicluster.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from minicluster.protocol.messages.fetch import replica_state
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.config import FetcherConfig
from minicluster.replica.fetching.fetch_session_handler import FetchSessionHandler, Named
from minicluster.replica.fetching.fetch_state import FetchKey, FetchState, Phase, or_undefined
from minicluster.replica.partition.reads import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from minicluster.replica.sessions.fetch_session import FINAL_EPOCH

_SESSIONS = 7
_TOPIC_IDS = 13
_REPLICA_STATE = 15

States = Mapping[FetchKey, FetchState]


def fetch_partition(
    key: FetchKey, state: FetchState, max_bytes: int
) -> FetchRequest.FetchPartition:
    """The fetch of one partition."""
    return FetchRequest.FetchPartition(
        partition=key[1],
        current_leader_epoch=state.leader_epoch,
        fetch_offset=state.offset,
        last_fetched_epoch=state.last_fetched_epoch,
        log_start_offset=state.partition.log_start_offset,
        partition_max_bytes=max_bytes,
    )


def fetch_request(
    session: FetchSessionHandler,
    to_send: Sequence[FetchKey],
    to_forget: Sequence[tuple[FetchKey, Named]],
    broker_id: int,
    broker_epoch: int,
    config: FetcherConfig,
) -> FetchRequest:
    """The next request of a session."""
    version = config.fetch_version
    in_state = version >= _REPLICA_STATE
    return FetchRequest(
        replica_id=-1 if in_state else broker_id,
        replica_state=replica_state(broker_id, broker_epoch) if in_state else replica_state(-1),
        max_wait_ms=config.max_wait_ms,
        min_bytes=config.min_bytes,
        max_bytes=config.max_bytes,
        session_id=session.id,
        session_epoch=session.epoch if version >= _SESSIONS else FINAL_EPOCH,
        topics=_topics(session, to_send) if to_send else (),
        forgotten_topics_data=_forgotten(session, to_forget, version) if to_forget else (),
    )


def _topics(
    session: FetchSessionHandler, to_send: Iterable[FetchKey]
) -> tuple[FetchRequest.FetchTopic, ...]:
    topics = []
    for _, group in groupby(sorted(to_send), key=lambda key: key[0]):
        named = [session.partitions[key] for key in group]
        topics.append(
            FetchRequest.FetchTopic(
                topic=named[0][0],
                topic_id=named[0][1],
                partitions=tuple(data for _, _, data in named),
            )
        )
    return tuple(topics)


def _forgotten(
    session: FetchSessionHandler, to_forget: Iterable[tuple[FetchKey, Named]], version: int
) -> tuple[FetchRequest.ForgottenTopic, ...]:
    """The partitions to forget.

    Where topics have names only, one that was deleted and created again takes the place of the old
    one in the session: forgotten under its name, the new one would not be fetched.
    """
    if version < _TOPIC_IDS:
        present = session.keys_by_name()
        to_forget = [(key, named) for key, named in to_forget if (named[0], key[1]) not in present]
    forgotten = sorted((named[1], named[0], key[1]) for key, named in to_forget)
    by_topic = groupby(forgotten, key=lambda item: item[:2])
    return tuple(
        FetchRequest.ForgottenTopic(
            topic=name, topic_id=topic_id, partitions=tuple(index for _, _, index in group)
        )
        for (topic_id, name), group in by_topic
    )


def epoch_request(
    states: States, keys: Iterable[FetchKey], broker_id: int
) -> OffsetForLeaderEpochRequest:
    """Look up the end of each log's latest epoch on the leader."""
    kind = OffsetForLeaderEpochRequest
    return kind(
        replica_id=broker_id,
        topics=tuple(
            kind.OffsetForLeaderTopic(
                topic=name,
                partitions=tuple(
                    kind.OffsetForLeaderPartition(
                        partition=index,
                        current_leader_epoch=state.leader_epoch,
                        leader_epoch=or_undefined(state.partition.latest_epoch),
                    )
                    for index, state in of_topic
                ),
            )
            for name, of_topic in _by_topic(states, keys)
        ),
    )


def list_offsets_request(
    states: States, keys: Iterable[FetchKey], broker_id: int, phase: Phase
) -> ListOffsetsRequest:
    """Look up the leader's log end, or its log start."""
    latest = phase is Phase.LATEST_OFFSET
    kind = ListOffsetsRequest
    return kind(
        replica_id=broker_id,
        topics=tuple(
            kind.ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    kind.ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=state.leader_epoch,
                        timestamp=LATEST_TIMESTAMP if latest else EARLIEST_TIMESTAMP,
                    )
                    for index, state in of_topic
                ),
            )
            for name, of_topic in _by_topic(states, keys)
        ),
    )


def _by_topic(
    states: States, keys: Iterable[FetchKey]
) -> Iterator[tuple[str, list[tuple[int, FetchState]]]]:
    by_name = sorted((states[key].partition.topic, key) for key in keys)
    for name, group in groupby(by_name, key=lambda item: item[0]):
        yield name, [(key[1], states[key]) for _, key in group]


def fetched(
    response: Any, keys_by_name: Callable[[], Mapping[tuple[str, int], FetchKey]]
) -> Iterator[tuple[FetchKey, Any]]:
    """The partitions of a Fetch response; below version 13 its topics have no id."""
    if not response.responses:
        return
    if any(topic.topic_id == ZERO_UUID for topic in response.responses):
        keys = keys_by_name()
        for topic in response.responses:
            for data in topic.partitions:
                key = keys.get((topic.topic, data.partition_index))
                if key is not None:
                    yield key, data
        return
    for topic in response.responses:
        for data in topic.partitions:
            yield (topic.topic_id.int, data.partition_index), data


def epoch_ends(
    response: Any, keys: Mapping[tuple[str, int], FetchKey]
) -> Iterator[tuple[FetchKey, Any]]:
    """The partitions of an OffsetForLeaderEpoch response."""
    for topic in response.topics:
        for data in topic.partitions:
            key = keys.get((topic.topic, data.partition))
            if key is not None:
                yield key, data


def offsets(
    response: Any, keys: Mapping[tuple[str, int], FetchKey]
) -> Iterator[tuple[FetchKey, Any]]:
    """The partitions of a ListOffsets response."""
    for topic in response.topics:
        for data in topic.partitions:
            key = keys.get((topic.name, data.partition_index))
            if key is not None:
                yield key, data
