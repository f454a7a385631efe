"""A fetcher's side of its leader: the state of each partition, the session, the requests."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from minicluster.log.epochs import UNDEFINED_EPOCH
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from minicluster.protocol.messages.fetch import replica_state
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.config import FetcherConfig
from minicluster.replica.fetching.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    next_epoch,
)
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.reads import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from minicluster.replica.requests.purgatory import Key

# The requests of a fetcher to its leader, and their responses by partition.
#
# Versions: Fetch v4 to v17: in a session from v7 on (KIP-227); topics by id from v13 on; replica id
#           and broker epoch in a tagged field from v15 on (KIP-903). ListOffsets and
#           OffsetForLeaderEpoch have topics by name.
# Source:   RemoteLeaderEndPoint.

# The state of one partition in its fetcher.
#
# Source:  PartitionFetchState, ReplicaState (Truncating, Fetching).


FetchKey = tuple[int, int]  # (topic id as a number, which Python hashes without a call; partition)


class Phase(enum.Enum):
    """The request that a partition's next step needs."""

    FETCHING = "fetch"
    TRUNCATING = "epoch end"
    LATEST_OFFSET = "latest offset"
    EARLIEST_OFFSET = "earliest offset"


class FetchState(Struct):
    """The next fetch of one partition; the epochs are -1 where not known.

    Shapes:  lag: how many committed records there were to fetch when the last ones came; None
             before the first response.
    """

    partition: Partition
    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    phase: Phase
    delayed_until_ms: int = 0
    lag: int | None = None

    @property
    def key(self) -> FetchKey:
        """The partition among those of its fetcher."""
        return fetch_key(self.partition.key)

    @classmethod
    def of(cls, partition: Partition) -> FetchState:
        """Fetch from the log end on; a log without epochs is truncated first."""
        latest = partition.latest_epoch
        return cls(
            partition=partition,
            offset=partition.log_end_offset,
            leader_epoch=partition.leader_epoch,
            last_fetched_epoch=or_undefined(latest),
            phase=Phase.TRUNCATING if latest is None else Phase.FETCHING,
        )

    def resume(self, offset: int) -> None:
        """Fetch on from an offset, which is the log end."""
        self.offset = offset
        self.last_fetched_epoch = or_undefined(self.partition.latest_epoch)
        self.phase = Phase.FETCHING


def fetch_key(key: Key) -> FetchKey:
    """A partition in a fetcher and its session."""
    return key[0].int, key[1]


def or_undefined(epoch: int | None) -> int:
    """The epoch as requests carry it."""
    return UNDEFINED_EPOCH if epoch is None else epoch


# The follower's end of its fetch session: each request names what has changed since the last one.
#
#     full request, epoch 0 --session id--> incremental, epoch 1 --> incremental, epoch 2 ...
#     incremental --FETCH_SESSION_ID_NOT_FOUND--> full, without the old id
#     incremental --any other error, no response--> full, closes the old session
#
# A leader without room for a session responds with id 0, and every request is a full one.
#
# Source:  KIP-227; FetchSessionHandler, FetchMetadata.


Named = tuple[str, uuid.UUID, Any]  # a topic's name and id, and a partition as requests have it


class FetchSessionHandler:
    """The session with one leader.

    Shapes:  ``partitions`` has each partition as the leader was last sent it, with its topic.
             ``id`` and ``epoch`` are those of the next request.
    """

    def __init__(self) -> None:
        self.id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[FetchKey, Named] = {}
        self._by_name: dict[tuple[str, int], FetchKey] | None = None

    @property
    def is_full(self) -> bool:
        """The next request has all partitions."""
        return self.epoch == INITIAL_EPOCH

    def keys_by_name(self) -> dict[tuple[str, int], FetchKey]:
        """The partitions as requests and responses without topic ids name them."""
        if self._by_name is None:
            self._by_name = {(name, key[1]): key for key, (name, _, _) in self.partitions.items()}
        return self._by_name

    def update(
        self, changed: Iterable[tuple[FetchKey, Named | None]]
    ) -> tuple[list[FetchKey], list[tuple[FetchKey, Named]]]:
        """Take the partitions of the next request: with its data, or None to leave it out.

        Shapes:  -> the keys to send, and the keys to forget with what was sent of them; a full
                 request has all partitions.
        Source:  FetchSessionHandler.Builder.build.
        """
        partitions = self.partitions
        to_send: list[FetchKey] = []
        to_forget: list[tuple[FetchKey, Named]] = []
        for key, named in changed:
            before = partitions.get(key)
            if named is None:
                if before is not None:
                    del partitions[key]
                    self._by_name = None
                    to_forget.append((key, before))
            elif before != named:
                if before is None:
                    self._by_name = None
                partitions[key] = named
                to_send.append(key)
        return to_send, to_forget

    def on_response(self, response: Any, keys: Sequence[FetchKey]) -> bool:
        """Take a response and the partitions that it has.

        Shapes:  -> whether its partitions may be used.
        Source:  FetchSessionHandler.handleResponse.
        """
        if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._open_another()
            return False
        if response.error_code != ErrorCode.NONE:
            self.on_failure()
            return False
        # Both sides must have the same partitions. If they differ once, each later response would
        # be taken for what it is not.
        sent = self.partitions
        if self.is_full:
            if set(keys) != sent.keys():
                self._open_another()
                return False
        elif any(key not in sent for key in keys):
            self.on_failure()
            return False
        if response.session_id == INVALID_SESSION_ID:
            self._open_another()
        else:
            self.id, self.epoch = response.session_id, next_epoch(self.epoch)
        return True

    def on_failure(self) -> None:
        """Close the session with the next request, which is a full one.

        Source:  FetchSessionHandler.handleError, FetchMetadata.nextCloseExistingAttemptNew.
        """
        self.epoch = INITIAL_EPOCH

    def _open_another(self) -> None:
        self.id, self.epoch = INVALID_SESSION_ID, INITIAL_EPOCH


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
