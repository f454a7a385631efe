"""AlterReplicaLogDirs: a replica moves to another directory of its broker (KIP-113, KIP-858)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterReplicaLogDirsRequest,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
)
from minicluster.protocol.records import ConfigRecord, FeatureLevelRecord
from minicluster.replica.config import FetcherConfig
from minicluster.replica.log_manager import VOLUME_BYTES
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS

OLD, NEW = uuid.UUID(int=0xD001), uuid.UUID(int=0xD101)
NAMES = {"/old": OLD, "/new": NEW}
KEY = (TOPIC_IDS["orders"], 0)


def with_values(*values: bytes) -> Cluster:
    """One broker with two directories, and a topic in the first one."""
    cluster = Cluster(1, dir_names=NAMES)
    cluster.create_topic(replicas=(1,))
    for value in values:
        cluster.produce(1, value)
    return cluster


def move(cluster: Cluster, path: str, *, topic: str = "orders", index: int = 0) -> int:
    """Request a move.

    Shapes:  -> its error.
    """
    kind = AlterReplicaLogDirsRequest
    wanted = kind.AlterReplicaLogDirTopic(name=topic, partitions=(index,))
    request = kind(dirs=(kind.AlterReplicaLogDir(path=path, topics=(wanted,)),))
    response = cluster.response(cluster.request(1, request, 2))
    assert response.results[0].topic_name == topic
    error: int = response.results[0].partitions[0].error_code
    return error


def described_dirs(cluster: Cluster) -> Sequence[Any]:
    """What the broker says of its directories."""
    response = cluster.response(cluster.request(1, DescribeLogDirsRequest(topics=None), 5))
    return tuple(response.results)


def log_dirs(cluster: Cluster) -> dict[str, list[tuple[int, bool]]]:
    """(lag, is future) of the logs in each directory."""
    return {
        result.log_dir: [
            (partition.offset_lag, partition.is_future_key)
            for topic in result.topics
            for partition in topic.partitions
        ]
        for result in described_dirs(cluster)
    }


def assigned(cluster: Cluster) -> uuid.UUID:
    """The directory of the replica by the metadata."""
    known = cluster.image.topics.partition(*KEY)
    assert known is not None
    return known.directories[0]


def test_a_replica_moves_with_its_records_and_its_offsets() -> None:
    cluster = with_values(b"a", b"b")
    before = cluster.partition(1).log
    assert move(cluster, "/new") == ErrorCode.NONE
    assert log_dirs(cluster) == {"/old": [(0, False)], "/new": [(2, True)]}
    cluster.advance(110)
    assert log_dirs(cluster) == {"/old": [], "/new": [(0, False)]}
    assert assigned(cluster) == NEW
    partition = cluster.partition(1)
    assert partition.log is not before and partition.log.epochs.entries == before.epochs.entries
    assert (partition.high_watermark, cluster.log_values(1)) == (2, [b"a", b"b"])
    cluster.produce(1, b"c")
    assert cluster.log_values(1) == [b"a", b"b", b"c"]


def test_the_log_is_replaced_once_the_controller_has_taken_the_directory() -> None:
    cluster = with_values(b"a")
    cluster.controller_responds = False
    move(cluster, "/new")
    cluster.advance(10)
    assert log_dirs(cluster) == {"/old": [(0, False)], "/new": [(0, True)]}
    cluster.produce(1, b"b")
    assert log_dirs(cluster) == {"/old": [(0, False)], "/new": [(1, True)]}
    cluster.controller_responds = True
    cluster.advance(40_000)  # the request is sent again
    assert log_dirs(cluster) == {"/old": [], "/new": [(0, False)]}
    assert cluster.log_values(1) == [b"a", b"b"]


def test_a_long_log_is_copied_fetch_by_fetch() -> None:
    size = FetcherConfig().partition_max_bytes // 2 + 1
    cluster = with_values(*(bytes([n]) * size for n in range(3)))
    cluster.controller_responds = False
    move(cluster, "/new")
    future = cluster.partition(1).future
    assert future is not None
    ends = []
    while future.log.end_offset < 3:
        ends.append(future.log.end_offset)
        cluster.see(1, cluster.managers[1].on_timer("alter-log-dirs", cluster.now_ms))
    assert ends == [0, 1, 2]


def test_a_move_elsewhere_ends_the_first_one_and_is_taken_back() -> None:
    cluster = with_values(b"a")
    cluster.controller_responds = False
    move(cluster, "/new")
    cluster.advance(10)
    assert cluster.managers[1].state.assignments.pending == {KEY: NEW}
    assert move(cluster, "/old") == ErrorCode.NONE
    assert log_dirs(cluster) == {"/old": [(0, False)], "/new": []}
    assert cluster.managers[1].state.assignments.pending == {KEY: OLD}
    cluster.controller_responds = True
    cluster.advance(60_000)
    assert assigned(cluster) == OLD


def test_a_move_goes_on_after_a_restart() -> None:
    cluster = with_values(b"a")
    cluster.controller_responds = False
    move(cluster, "/new")
    cluster.advance(10)
    cluster.crash(1)
    cluster.controller_responds = True
    cluster.start(1, epoch=2_000)
    cluster.advance(1_000)
    assert log_dirs(cluster) == {"/old": [], "/new": [(0, False)]}
    assert cluster.log_values(1) == [b"a"]


def test_a_future_log_is_truncated_with_the_log() -> None:
    cluster = with_values(b"a", b"b")
    cluster.controller_responds = False
    move(cluster, "/new")
    cluster.advance(10)
    partition = cluster.partition(1)
    partition.log.truncate(1)
    cluster.change(leader=1)  # another epoch, whose records differ
    cluster.produce(1, b"other")
    cluster.controller_responds = True
    cluster.advance(60_000)
    assert log_dirs(cluster) == {"/old": [], "/new": [(0, False)]}
    assert cluster.log_values(1) == [b"a", b"other"]
    assert cluster.partition(1).log.epochs.entries == ((0, 0), (1, 1))


def test_without_directories_in_the_metadata_the_copy_replaces_the_log_at_once() -> None:
    cluster = with_values(b"a")
    before = MetadataVersion.V3_7_IV1
    cluster.publish(FeatureLevelRecord(name="metadata.version", feature_level=before))
    cluster.controller_responds = False
    move(cluster, "/new")
    cluster.advance(10)
    assert log_dirs(cluster) == {"/old": [], "/new": [(0, False)]}


def test_a_failed_directory_ends_the_moves_into_it() -> None:
    cluster = with_values(b"a")
    cluster.controller_responds = False
    move(cluster, "/new")
    cluster.see(1, cluster.managers[1].on_directory_failure(NEW, cluster.now_ms))
    assert cluster.partition(1).future is None
    assert move(cluster, "/new") == ErrorCode.KAFKA_STORAGE_ERROR
    errors = {result.log_dir: result.error_code for result in described_dirs(cluster)}
    assert errors == {"/old": ErrorCode.NONE, "/new": ErrorCode.KAFKA_STORAGE_ERROR}


@pytest.mark.parametrize(
    ("path", "topic", "index", "error"),
    [
        ("/other", "orders", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/other", "none", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/other", "n" * 213, 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/other", "n" * 214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("/new", "none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/new", "orders", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/new", "bills", 0, ErrorCode.REPLICA_NOT_AVAILABLE),
        ("/old", "orders", 0, ErrorCode.NONE),
    ],
)
def test_a_move_is_refused(path: str, topic: str, index: int, error: ErrorCode) -> None:
    cluster = with_values(b"a")
    cluster.create_topic("bills", replicas=(2,))
    assert move(cluster, path, topic=topic, index=index) == error
    assert cluster.partition(1).future is None


def test_no_replica_moves_into_a_cordoned_directory() -> None:
    cluster = with_values(b"a")
    cluster.publish(
        ConfigRecord(resource_type=4, resource_name="1", name="cordoned.log.dirs", value="/new")
    )
    assert move(cluster, "/new") == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_replica_that_is_not_there_yet_is_made_where_it_was_to_move() -> None:
    cluster = Cluster(1, dir_names=NAMES)
    assert move(cluster, "/new") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.create_topic(replicas=(1,))
    assert log_dirs(cluster) == {"/old": [], "/new": [(0, False)]}


def test_a_directory_has_the_size_of_its_volume_and_what_all_logs_on_it_leave_free() -> None:
    """KIP-827; both directories are on one volume, as those of a Kafka broker may be."""
    cluster = with_values(b"a", b"b")
    described = described_dirs(cluster)
    [size] = [p.partition_size for result in described for t in result.topics for p in t.partitions]
    assert size > 0
    for result in described:
        assert result.total_bytes == VOLUME_BYTES
        assert result.usable_bytes == VOLUME_BYTES - size


def test_a_failed_directory_has_no_size() -> None:
    cluster = with_values()
    cluster.see(1, cluster.managers[1].on_directory_failure(NEW, cluster.now_ms))
    failed = {result.log_dir: result for result in described_dirs(cluster)}["/new"]
    assert failed.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (failed.total_bytes, failed.usable_bytes) == (-1, -1)


def test_a_replica_moves_whose_log_begins_within_a_batch() -> None:
    """DeleteRecords leaves the batch in which the log begins; PlaintextAdminIntegrationTest."""
    cluster = Cluster(1, dir_names=NAMES)
    cluster.create_topic(replicas=(1,))
    cluster.produce(1, b"a", b"b", b"c")
    kind = DeleteRecordsRequest
    partition = kind.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = kind.DeleteRecordsTopic(name="orders", partitions=(partition,))
    cluster.response(cluster.request(1, kind(topics=(topic,), timeout_ms=1_000), 2))
    assert move(cluster, "/new") == ErrorCode.NONE
    cluster.advance(110)
    assert log_dirs(cluster) == {"/old": [], "/new": [(0, False)]}
    assert cluster.partition(1).log_start_offset == 2
    assert cluster.log_values(1) == [b"a", b"b", b"c"]
