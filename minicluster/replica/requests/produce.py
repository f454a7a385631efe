"""Produce: append, and with acks=all wait for the high watermark.

    handle_produce
      produced_records        the batches, as the bytes have them
      _check_transactional_id, _checked_partitions    what is rejected before any append
      _verify_and_append      transactional records: the coordinator first (add_partitions_to_txn)
      append_records          ``requests.append_records``, which coordinators use as well
      _respond                now, or once the records are replicated; in the order of Kafka's maps

Versions: v1 and v2 add throttle time and timestamps. v3 adds the transactional id and takes one
          batch per partition, of magic 2 (KIP-98). v5 adds the log start to the response, v7 takes
          zstd (KIP-110), v8 adds record errors (KIP-467), v10 the current leader (KIP-951), v12 the
          transaction of KIP-890, v13 topic ids in place of names (KIP-516).
Source:   KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend;
          ByteBufferLogInputStream.nextBatch, ProduceRequest.validateRecords.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from minicluster.java_order import (
    hash_map_order,
    scala_copy_order,
    scala_map_order,
    topic_id_partition_hash,
    topic_partition_hash,
)
from minicluster.log import InvalidBatch, RecordBatch, Records
from minicluster.log.batch import CODEC_MASK, HEADER_BYTES, LENGTH_END, TRANSACTIONAL_BIT
from minicluster.log.format.compression import Codec
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import ProduceRequest, ProduceResponse
from minicluster.replica.effects import CloseConnection
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.leader_log import ACKS_NONE, BY_CLIENT
from minicluster.replica.producers.states import AppendCheck
from minicluster.replica.producers.verification import (
    Errors,
    Guards,
    TopicPartition,
    TransactionSupportedOperation,
    TransactionToVerify,
)
from minicluster.replica.replica_manager_state import TOPIC_IDS_FROM, ReplicaManagerState
from minicluster.replica.requests.append_records import AppendStatus, append_records
from minicluster.values import Value, replace

_MAGIC_AT = 16
_MAGIC = 2
_LEAST_BYTES = 14  # of a record of magic 0, without the offset and length before it
_ZSTD_FROM = 7
_PRODUCER_ID_END = 51  # of a batch of magic 2
_ATTRIBUTES_AT, _ATTRIBUTES_END = 21, 23
_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_Named = tuple[uuid.UUID, str, int]
_CURRENT_LEADER_FROM = 10
_GENERIC_ERROR_FROM = 11
_NO_LEADER = ProduceResponse.LeaderIdAndEpoch()
_UNVERIFIED = "Unable to verify the partition has been added to the transaction. Underlying error: "
_NOT_ADDED = "Partition was not added to the transaction"
_RETRIED_LATER = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def handle_produce(
    state: ReplicaManagerState,
    token: Any,
    request: Any,
    version: int,
    now_ms: int,
    *,
    internal_topics_allowed: bool = False,
) -> None:
    """Append, and respond now or once the records are replicated.

    With acks=0 nothing is sent: the response is None, and after an error the connection is closed,
    so that the producer finds out.

    Errors:  INVALID_RECORD for records that are null. Kafka fails over them twice, the second time
             when it makes the response with the error, and never responds; a client would wait for
             its own timeout.
    """
    acks = request.acks
    produced = _produced(state, request, version)
    try:
        _check_transactional_id(produced, request)
        statuses = _checked_partitions(state, produced, version)
        transaction = _transaction(statuses, request, version)
    except _WholeRequest as rejection:
        if acks == ACKS_NONE:
            state.effects.append(CloseConnection(token))
        else:
            in_order = _in_hash_order(request)
            response = error_response(in_order, rejection.error, rejection.message, version=version)
            state.respond(token, response)
        return

    # Later, where a coordinator is asked first. What was checked above may be another by then, so
    # the append looks up each partition again.
    def append(how: AppendCheck, verified: bool, at_ms: int) -> None:
        append_records(
            state,
            statuses,
            acks=acks,
            timeout_ms=request.timeout_ms,
            how=how,
            internal_topics_allowed=internal_topics_allowed,
            on_appended=partial(_respond, state, token, acks, version, verified),
            now_ms=at_ms,
        )

    if transaction is None:
        append(BY_CLIENT, False, now_ms)
    else:
        _verify_and_append(state, statuses, transaction, append, now_ms)


# --- the records, as the bytes have them: nothing in their headers is trusted yet --------------


class BrokenRequest(Exception):
    """Records over which Kafka stumbles, so that the request as a whole fails."""


class ProducedRecords(Value):
    """The batches of one partition, up to the damage that ends them.

    Shapes:  short: the first batch where it is shorter than a header; batches has the others.
    Errors:  damage: CORRUPT_MESSAGE for an impossible length or magic, INVALID_RECORD for magic 0
             and 1.
    """

    batches: tuple[RecordBatch, ...]
    damage: ReplicaError | None = None
    short: bytes | None = None

    @property
    def first_attributes(self) -> int | None:
        """The attributes of the first batch, None without one."""
        if self.short is not None:
            attributes = self.short[_ATTRIBUTES_AT:_ATTRIBUTES_END]
            return int.from_bytes(attributes, "big", signed=True)
        return self.batches[0].attributes if self.batches else None

    def only_batch(self, version: int) -> RecordBatch:
        """The one batch that a version takes.

        Errors:  the damage; INVALID_RECORD for none and for several;
                 UNSUPPORTED_COMPRESSION_TYPE for zstd below version 7 (KIP-110); CORRUPT_MESSAGE
                 for one that is shorter than a header. BrokenRequest for one without a producer id,
                 and below version 7 for an unknown codec.
        Source:  ProduceRequest.validateRecords, ReplicaManager.handleProduceAppend,
                 DefaultRecordBatch.isValid.
        """
        attributes = self.first_attributes
        if attributes is None:
            raise self.damage or ReplicaError(ErrorCode.INVALID_RECORD, "no record batch")
        if version < _ZSTD_FROM:
            codec = attributes & CODEC_MASK
            if codec > max(Codec):
                raise BrokenRequest
            if codec == Codec.ZSTD:
                raise ReplicaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd")
        if self.damage is not None:
            raise self.damage
        if len(self.batches) + (self.short is not None) > 1:
            raise ReplicaError(ErrorCode.INVALID_RECORD, "more than one record batch")
        if self.short is None:
            return self.batches[0]
        if len(self.short) < _PRODUCER_ID_END:
            raise BrokenRequest
        raise ReplicaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {len(self.short)} bytes")


def produced_records(value: bytes | Records | None) -> ProducedRecords:
    """Read what a produce carries for one partition; an incomplete last batch is left off."""
    if isinstance(value, Records):
        return ProducedRecords(value.batches)
    buffer = value or b""
    batches: list[RecordBatch] = []
    short = damage = None
    position = 0
    try:
        while (end := _end_of_batch(buffer, position)) is not None:
            if end - position >= HEADER_BYTES:
                batches.append(RecordBatch.decode(buffer, position, lenient=True))
            elif position == 0:
                short = bytes(buffer[:end])
            else:
                raise ReplicaError(ErrorCode.INVALID_RECORD, "more than one record batch")
            position = end
    except InvalidBatch as error:
        damage = ReplicaError(ErrorCode.CORRUPT_MESSAGE, str(error))
    except ReplicaError as error:
        damage = error
    return ProducedRecords(tuple(batches), damage, short)


def _end_of_batch(buffer: bytes, position: int) -> int | None:
    """The end of the batch at a position, None where no whole batch is left."""
    left = len(buffer) - position
    if left < LENGTH_END:
        return None
    length = int.from_bytes(buffer[position + 8 : position + LENGTH_END], "big", signed=True)
    if length < _LEAST_BYTES:
        raise ReplicaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_LEAST_BYTES})",
        )
    if left <= _MAGIC_AT:
        return None
    magic = int.from_bytes(buffer[position + _MAGIC_AT : position + _MAGIC_AT + 1], signed=True)
    if not 0 <= magic <= _MAGIC:
        raise ReplicaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    if left < LENGTH_END + length:
        return None
    if magic < _MAGIC:
        raise ReplicaError(ErrorCode.INVALID_RECORD, f"magic {magic}")
    return position + LENGTH_END + length


Produced = tuple[AppendStatus, ProducedRecords]


# --- checks before any append -----------------------------------------------------------------


class _WholeRequest(Exception):
    """The rejection of a request as a whole."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        self.error = error
        self.message = message


def _in_hash_order(request: Any) -> Any:
    """The request as its rejection lists it: each partition once, in the order of Java's maps.

    Source:  ProduceRequest.partitionSizes, getErrorResponse.
    """
    data = {(t.topic_id, t.name, d.index): d for t in request.topic_data for d in t.partition_data}
    topics: dict[tuple[uuid.UUID, str], list[Any]] = {}
    for key in hash_map_order(data, topic_id_partition_hash):
        topics.setdefault(key[:2], []).append(data[key])
    kind = ProduceRequest.TopicProduceData
    return replace(
        request,
        topic_data=tuple(
            kind(topic_id=topic_id, name=name, partition_data=tuple(partitions))
            for (topic_id, name), partitions in topics.items()
        ),
    )


def _produced(state: ReplicaManagerState, request: Any, version: int) -> list[Produced]:
    """The partitions of a request, in its order; one that it names twice comes twice."""
    produced: list[Produced] = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            name, topic_id, index = topic.name, topic.topic_id, data.index
            key = state.key_of(name, topic_id, index, version)
            status = AppendStatus(name, topic_id, index, key)
            produced.append((status, produced_records(data.records)))
    return produced


def _check_transactional_id(produced: Iterable[Produced], request: Any) -> None:
    """Reject transactional records in a request without a transactional id.

    Source:  RequestUtils.hasTransactionalRecords, which reads the first batches as they come.
    """
    for _, records in produced:
        if records.first_attributes is not None:
            if records.first_attributes & TRANSACTIONAL_BIT:
                if request.transactional_id is None:
                    raise _WholeRequest(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                return
        elif records.damage is not None and records.damage.error == ErrorCode.CORRUPT_MESSAGE:
            raise _WholeRequest(ErrorCode.CORRUPT_MESSAGE, records.damage.why)


def _checked_partitions(
    state: ReplicaManagerState, produced: Iterable[Produced], version: int
) -> list[AppendStatus]:
    """Reject partitions that do not exist, and records that this version, or any, cannot have.

    Of a partition that the request names twice the last good records are appended, though the
    response has the last rejection, if there is one.
    """
    valid: dict[tuple[uuid.UUID, str, int], AppendStatus] = {}
    rejected: dict[tuple[uuid.UUID, str, int], AppendStatus] = {}
    for status, records in produced:
        chosen = valid
        try:
            if status.key is None and version >= TOPIC_IDS_FROM:
                raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_ID)
            if status.key is None or state.image.topics.partition(*status.key) is None:
                raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            status.batch = records.only_batch(version)
        except BrokenRequest:
            raise _WholeRequest(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        except ReplicaError as rejection:
            status.reject(rejection)
            chosen = rejected
        chosen[status.topic_id, status.topic, status.index] = status
    return [*valid.values(), *rejected.values()]


# --- transactions -----------------------------------------------------------------------------


def _transaction(
    statuses: Iterable[AppendStatus], request: Any, version: int
) -> TransactionToVerify | None:
    """The transaction of a request's records; None without transactional ones.

    Source:  ReplicaManager.handleProduceAppend.
    """
    producers = {
        (status.batch.producer_id, status.batch.producer_epoch)
        for status in statuses
        if status.batch is not None and _is_transactional(status.batch)
    }
    if len(producers) > 1:
        raise _WholeRequest(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    operation = TransactionSupportedOperation.of_version(version, _GENERIC_ERROR_FROM)
    for producer_id, epoch in producers:
        return TransactionToVerify(request.transactional_id or "", producer_id, epoch, operation)
    return None


def _is_transactional(batch: RecordBatch) -> bool:
    return batch.is_transactional and batch.producer_id >= 0


def _verify_and_append(
    state: ReplicaManagerState,
    statuses: Sequence[AppendStatus],
    transaction: TransactionToVerify,
    append: Callable[[AppendCheck, bool, int], None],
    now_ms: int,
) -> None:
    """Append once the coordinator has the partitions in the transaction.

    Source:  ReplicaManager.handleProduceAppend (postVerificationCallback).
    """
    verifier = state.verifier
    if verifier is None:
        append(BY_CLIENT, False, now_ms)
        return
    to_verify: dict[TopicPartition, AppendStatus] = {}
    sequences: dict[TopicPartition, int] = {}
    for status in statuses:
        if status.key is not None and status.batch is not None and _is_transactional(status.batch):
            name = state.topic_name(status.key[0]) or "", status.index
            to_verify[name], sequences[name] = status, status.batch.base_sequence

    def on_guarded(errors: Errors, guards: Guards, at_ms: int) -> None:
        take_verification(state, to_verify, errors, guards, transaction.operation)
        append(AppendCheck(verifies=verifier.is_enabled), bool(guards), at_ms)

    verifier.verify_with_retries(transaction, sequences, on_guarded, now_ms)


@step
def take_verification(
    state: ReplicaManagerState,
    statuses: Mapping[TopicPartition, AppendStatus],
    errors: Errors,
    guards: Guards,
    operation: TransactionSupportedOperation,
) -> None:
    """Give each append its guard, or the error of a coordinator or of this broker."""
    for name, status in statuses.items():
        status.guard = guards.get(name)
        if name in errors:
            status.error, status.message = _produce_error(errors[name], operation)


def _produce_error(
    error: ErrorCode, operation: TransactionSupportedOperation
) -> tuple[ErrorCode, str | None]:
    """The error of a verification as a producer gets it.

    A producer retries after NOT_ENOUGH_REPLICAS, without new metadata. An old one has no rule for
    these errors of a coordinator.
    """
    if error == ErrorCode.INVALID_TXN_STATE:
        return error, _NOT_ADDED
    is_concurrent = error == ErrorCode.CONCURRENT_TRANSACTIONS
    if error in _RETRIED_LATER or (is_concurrent and not operation.supports_epoch_bump):
        return ErrorCode.NOT_ENOUGH_REPLICAS, f"{_UNVERIFIED}{error.name}"
    return error, None


# --- responses --------------------------------------------------------------------------------


def _respond(
    state: ReplicaManagerState,
    token: Any,
    acks: int,
    version: int,
    verified: bool,
    statuses: Sequence[AppendStatus],
    now_ms: int,
) -> None:
    if acks != ACKS_NONE:
        in_order = in_produce_order(state, statuses, verified=verified)
        state.respond(token, _response(state, in_order, version))
    elif any(status.error != ErrorCode.NONE for status in statuses):
        state.effects.append(CloseConnection(token))
    else:
        state.respond(token, None)


def _response(
    state: ReplicaManagerState, statuses: Sequence[AppendStatus], version: int
) -> ProduceResponse:
    """The response; where this broker does not lead, with the leaders and their endpoints.

    The producer finds them without another Metadata request (KIP-951).
    """
    topics: dict[tuple[uuid.UUID, str], list[Any]] = {}
    leaders: dict[int, None] = {}
    for status in statuses:
        leader = _NO_LEADER
        if status.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= _CURRENT_LEADER_FROM:
            number, epoch = state.current_leader(status.key)
            leader = ProduceResponse.LeaderIdAndEpoch(leader_id=number, leader_epoch=epoch)
            leaders[number] = None
        data = _partition_response(status, leader)
        topics.setdefault((status.topic_id, status.topic), []).append(data)
    return ProduceResponse(
        responses=tuple(
            ProduceResponse.TopicProduceResponse(
                name=name, topic_id=topic_id, partition_responses=tuple(data)
            )
            for (topic_id, name), data in topics.items()
        ),
        node_endpoints=tuple(
            ProduceResponse.NodeEndpoint(node_id=n, host=e.host, port=e.port, rack=rack)
            for n, e, rack in state.endpoints(leaders)
        ),
    )


def _partition_response(
    status: AppendStatus, leader: ProduceResponse.LeaderIdAndEpoch
) -> ProduceResponse.PartitionProduceResponse:
    appended = status.appended
    error = ProduceResponse.BatchIndexAndErrorMessage
    return ProduceResponse.PartitionProduceResponse(
        index=status.index,
        error_code=status.error,
        base_offset=-1 if appended is None else appended.first_offset,
        log_append_time_ms=-1 if appended is None else appended.log_append_time_ms,
        log_start_offset=status.log_start_offset,
        record_errors=tuple(
            error(batch_index=e.batch_index, batch_index_error_message=e.message)
            for e in status.record_errors
        ),
        error_message=status.message,
        current_leader=leader,
    )


# --- the order of a response's partitions ------------------------------------------------------


def in_produce_order(
    state: ReplicaManagerState, statuses: Sequence[AppendStatus], *, verified: bool
) -> list[AppendStatus]:
    """The statuses as the response lists them: in the order of the maps that Kafka has them in.

        appended   a mutable Scala map, copied into a java.util.HashMap
        rejected   mutable Scala maps: partitions that are not there, then records that are bad
        together   an immutable Scala map; a mutable one once a coordinator has verified partitions

    Clients can see this order, and recorded responses of Kafka's brokers are compared with it.

    Shapes:  verified: a coordinator was involved.
    Source:  KafkaApis.handleProduceRequest (sendResponseCallback),
             ReplicaManager.handleProduceAppend.
    """
    if len(statuses) < 2:
        return list(statuses)
    by_id = state.rules.produce_by_topic_id

    def code(named: _Named) -> int:
        return topic_id_partition_hash(named) if by_id else topic_partition_hash(named[1:])

    appended: dict[_Named, AppendStatus] = {}
    not_there: dict[_Named, AppendStatus] = {}
    invalid: dict[_Named, AppendStatus] = {}
    for status in statuses:
        is_not_there = status.error in _NOT_THERE
        rejected = not_there if is_not_there else invalid
        chosen = rejected if status.batch is None else appended
        chosen[_named(state, status)] = status
    copied = scala_map_order(appended, code, made_from=len(appended))
    together = list(
        dict.fromkeys(
            [
                *hash_map_order(copied, code),
                *scala_map_order(not_there, code),
                *scala_map_order(invalid, code),
            ]
        )
    )
    if verified:
        together = scala_map_order(together, code, made_from=len(together))
    else:
        together = scala_copy_order(together, code)
    all_ = {**appended, **not_there, **invalid}
    return [all_[named] for named in together]


def _named(state: ReplicaManagerState, status: AppendStatus) -> _Named:
    """A partition by the topic id of the request or of the metadata, and by its name."""
    if status.key is None:
        return status.topic_id, status.topic, status.index
    return status.key[0], state.topic_name(status.key[0]) or status.topic, status.index
