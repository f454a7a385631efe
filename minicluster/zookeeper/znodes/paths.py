"""The paths of Kafka's znodes. Source:  kafka.zk.ZkData."""

from __future__ import annotations

from minicluster.metadata.topic_partition import TopicPartition

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
FEATURE = "/feature"
CLUSTER_ID = "/cluster/id"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
CONFIG_CHANGES = "/config/changes"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
DEFAULT_ENTITY = "<default>"

ISR_CHANGE_PREFIX = f"{ISR_CHANGE_NOTIFICATION}/isr_change_"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"

PERSISTENT = (
    "/consumers", BROKER_IDS, TOPICS, CONFIG_CHANGES, DELETE_TOPICS, "/brokers/seqid",
    ISR_CHANGE_NOTIFICATION, PRODUCER_ID_BLOCK, LOG_DIR_EVENT_NOTIFICATION, TOPIC_CONFIGS,
    "/config/clients", "/config/users", BROKER_CONFIGS, "/config/ips",
)  # fmt: skip
"""The znodes that a broker creates before it registers (KafkaZkClient.createTopLevelPaths)."""


def broker_id(broker: int) -> str:
    """The ephemeral znode of a live broker."""
    return f"{BROKER_IDS}/{broker}"


def topic(name: str) -> str:
    """The znode of a topic's assignment."""
    return f"{TOPICS}/{name}"


def topic_partitions(name: str) -> str:
    """The znode above a topic's partitions."""
    return f"{TOPICS}/{name}/partitions"


def partition(of: TopicPartition) -> str:
    """The znode above a partition's state."""
    return f"{topic_partitions(of.topic)}/{of.partition}"


def partition_state(of: TopicPartition) -> str:
    """The znode of leader and ISR."""
    return f"{partition(of)}/state"


def topic_config(name: str) -> str:
    """The znode of a topic's configs."""
    return f"{TOPIC_CONFIGS}/{name}"


def broker_config(name: str) -> str:
    """The znode of a broker's configs; without a name, that of all brokers."""
    return f"{BROKER_CONFIGS}/{name or DEFAULT_ENTITY}"


def delete_topic(name: str) -> str:
    """The request to delete a topic."""
    return f"{DELETE_TOPICS}/{name}"


def state_of(path: str) -> TopicPartition | None:
    """The partition of a state znode's path, None for another path."""
    parts = path.split("/")
    if len(parts) == 7 and path.startswith(f"{TOPICS}/") and parts[6] == "state":
        return TopicPartition(parts[3], int(parts[5]))
    return None


def is_valid(path: str) -> bool:
    """ZooKeeper's client takes the path; else Kafka's call fails before it is sent.

    Source:  org.apache.zookeeper.common.PathUtils.validatePath.
    """
    names = path.split("/")
    if names[0] or any(name in ("", ".", "..") for name in names[1:]):
        return path == "/"
    return not any(
        "\x00" <= char <= "\x1f"
        or "\x7f" <= char <= "\x9f"
        or "\ud800" <= char <= "\uf8ff"
        or "\ufff0" <= char <= "\uffff"
        for char in path
    )
