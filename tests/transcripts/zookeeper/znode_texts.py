"""Every znode that a broker wrote, decoded and encoded again: byte for byte the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

from minicluster.protocol.errors import ProtocolError
from minicluster.zookeeper.znodes import cluster, notifications, paths, topics
from minicluster.zookeeper.znodes.partition_state import PartitionState
from tests.transcripts.report import AGREE, DIFFER, NOT_BUILT, Outcome
from tests.transcripts.zookeeper.recording import Recording


def compare_texts(recording: Recording) -> Iterator[Outcome]:
    """One outcome for each znode that was written with a text."""
    for transaction in recording.transactions:
        if transaction.broker is None or transaction.failed:
            continue
        for entry in transaction.entries:
            if entry.op in ("create", "set") and entry.data is not None:
                kind, text = _again(entry.path, entry.data)
                where = f"{recording.path.name} zxid {transaction.zxid}"
                if text is None:
                    yield Outcome(f"text {kind}", NOT_BUILT, where, entry.path)
                    continue
                verdict = AGREE if text == entry.data else DIFFER
                detail = f"{entry.path}\n  {entry.data.decode()}\n  {text.decode()}"
                yield Outcome(f"text {kind}", verdict, where, detail)


def _again(path: str, data: bytes) -> tuple[str, bytes | None]:
    try:
        return _encoded(path, data)
    except (ProtocolError, KeyError) as error:
        return path, f"{error!r}".encode()


def _encoded(path: str, data: bytes) -> tuple[str, bytes | None]:
    if paths.state_of(path) is not None:
        return "partition state", PartitionState.from_json(data).to_json().encode()
    parent = path.rpartition("/")[0]
    match parent:
        case paths.TOPICS:
            return "topic", topics.TopicAssignment.decode(data).encode()
        case paths.BROKER_IDS:
            return "broker", cluster.BrokerRegistration.decode(data).encode()
        case paths.TOPIC_CONFIGS | paths.BROKER_CONFIGS:
            return "config", topics.encode_config(topics.decode_config(data))
        case paths.CONFIG_CHANGES:
            return "config change", topics.encode_config_change(topics.decode_config_change(data))
        case paths.ISR_CHANGE_NOTIFICATION:
            partitions = notifications.decode_partitions(data)
            return "ISR change", notifications.encode_partitions(partitions)
        case paths.LOG_DIR_EVENT_NOTIFICATION:
            broker = notifications.decode_log_dir_event(data)
            return "log dir event", notifications.encode_log_dir_event(broker)
    value = json.loads(data)
    match path:
        case paths.REASSIGN_PARTITIONS:
            reassigned = notifications.decode_reassignment(data)
            return "reassignment", notifications.encode_reassignment(reassigned)
        case paths.CONTROLLER:
            encoded = cluster.encode_controller(
                cluster.decode_controller(data),
                int(value["timestamp"]),
                with_kraft_epoch=value["version"] == 2,
            )
            return "controller", encoded
        case paths.CONTROLLER_EPOCH:
            epoch = cluster.decode_controller_epoch(data)
            return "controller epoch", cluster.encode_controller_epoch(epoch)
        case paths.FEATURE:
            levels = {n: f["max_version_level"] for n, f in value["features"].items()}
            encoded = cluster.encode_features(
                value["version"], enabled=value["status"] == 1, features=levels
            )
            return "features", encoded
        case paths.CLUSTER_ID:
            return "cluster id", cluster.encode_cluster_id(value["id"])
        case paths.PRODUCER_ID_BLOCK:
            block = cluster.decode_producer_id_block(data)
            return "producer ids", cluster.encode_producer_id_block(value["broker"], *block)
    return path, None
