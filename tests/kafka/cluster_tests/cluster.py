"""The process of one cluster, for one of Apache Kafka's cluster tests.

``python -m tests.kafka.cluster_tests.cluster SHAPE``: SHAPE is what the test asks for, as JSON.
The first line of output has the addresses; then each line of the input, such as ``stop 1``, is
carried out by the function in COMMANDS and answered, until the test ends this process.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.security import PROTOCOL_MAP, STANDARD_AUTHORIZER
from minicluster.actors.listeners.address import ListenAddress
from minicluster.actors.nodes.config import OF_AUTHORIZER
from minicluster.actors.recording.metadata_sink import Follow
from minicluster.configs.definitions import broker_configs
from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.metadata.bootstrap import default_features
from minicluster.metadata.image.partition import RECOVERING
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol.records import PartitionChangeRecord
from minicluster.protocol.uuids import parse_uuid
from minicluster.replica.log_cleaning import partition_bytes
from minicluster.replica.log_manager import ReplicaStore
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.replica_log import ReplicaLog
from minicluster.replica.segments import segments_of
from minicluster.security.protocols import CONTROLLER_LISTENER, SecurityProtocol
from minicluster.values import replace

SHUT_DOWN_WITHIN = "60s"  # a broker that started again before would not have shut down cleanly

# Its versions are the latest, which are for testing only (KafkaClusterTestKit).
OF_TEST_KIT = {
    "unstable.feature.versions.enable": "true",
    "unstable.api.versions.enable": "true",
}

# What a test sets beside Kafka's own configs is for a class that it brings along.
UNSERVED = {
    "authorizer.class.name": "an authorizer of its own",
    "metric.reporters": "reporters of metrics",
    "create.topic.policy.class.name": "a policy of topics",
    "alter.config.policy.class.name": "a policy of configs",
    "remote.log.storage.system.enable": "tiered storage",
}

# It denies one principal something, and another class of tests has that principal.
DENIES_NOTHING = "kafka.server.AlterCredentialsTest$TestStandardAuthorizer"


def said(**values: object) -> None:
    """One line for the test."""
    print(json.dumps(values), flush=True)


def unserved(configs: Iterable[Mapping[str, str]]) -> str | None:
    """What this project does not serve and the test sets, None for a test that can be played."""
    for config in configs:
        for name, what in UNSERVED.items():
            if config.get(name, "false") not in ("false", "", DENIES_NOTHING, STANDARD_AUTHORIZER):
                return f"{what} ({name})"
    return None


def known(config: Mapping[str, str]) -> dict[str, str]:
    """The configs of Kafka's and of its authorizer, without those of plugins."""
    names = {*broker_configs().keys, *OF_AUTHORIZER}
    values = {name: value for name, value in config.items() if name in names}
    if values.get("authorizer.class.name") == DENIES_NOTHING:
        del values["authorizer.class.name"]
    return values


def cluster_of(shape: Mapping[str, Any]) -> MiniCluster:
    """The cluster of a test; features that it does not name have the version's default."""
    version = MetadataVersion.parse(shape["metadata_version"])
    features = {**default_features(version), **shape["features"]}
    voters = shape.get("initial_voters", {})
    quorum = {
        "kraft.version": features.pop("kraft.version", int(bool(voters))),
        "initial.controllers": len(voters),
    }
    controllers = {}
    if (
        shape["controller_protocol"] != SecurityProtocol.PLAINTEXT
    ):  # which it is by default, as brokers tell
        controllers[PROTOCOL_MAP] = f"{CONTROLLER_LISTENER}:{shape['controller_protocol']}"
    cluster = MiniCluster(
        broker_ids=shape["broker_ids"],
        controller_ids=shape["controller_ids"],
        config={**OF_TEST_KIT, **known(shape["config"]), **quorum, **controllers},
        node_configs={int(n): known(own) for n, own in shape["node_configs"].items()},
        metadata_version=shape["metadata_version"],
        features=features,
        listeners=ListenAddress(advertised="localhost", listeners=shape["protocol"]),
        users=shape["users"],
        runtime="threaded",
    )
    format_as_named(cluster, shape)
    return cluster


def format_as_named(cluster: MiniCluster, shape: Mapping[str, Any]) -> None:
    """Give the cluster and the directories of its nodes the ids that a test has chosen.

    A voter first has the directory of the set of voters, which need not be its own.
    """
    running = inside(cluster)
    if "cluster_id" in shape:
        running.plan = replace(running.plan, cluster_id=shape["cluster_id"])
    first = {node_id: [voter] for node_id, voter in shape.get("initial_voters", {}).items()}
    for node_id, directories in {**shape.get("directory_ids", {}), **first}.items():
        running.disks[int(node_id)].wipe(map(parse_uuid, directories))


def replace_disks(cluster: MiniCluster, shape: Mapping[str, Any]) -> None:
    """Bring voters back whose own directory is another one than that of the set of voters."""
    running = inside(cluster)
    for node_id, voter in shape.get("initial_voters", {}).items():
        own = shape["directory_ids"][node_id]
        if own != [voter]:
            cluster.kill(int(node_id))
            running.disks[int(node_id)].wipe(map(parse_uuid, own))
            cluster.restart(int(node_id))


def stop(cluster: MiniCluster, node_id: str) -> None:
    """Shut a broker down."""
    node = cluster.node(int(node_id))
    cluster.controlled_shutdown(node)
    cluster.wait_until(lambda: not node.is_running, within=SHUT_DOWN_WITHIN)


def start(cluster: MiniCluster, node_id: str) -> None:
    """Start it again."""
    cluster.restart(cluster.node(int(node_id)))


def start_unclean(cluster: MiniCluster, node_id: str) -> None:
    """Start it again as if it had crashed: the file of its clean shutdown is deleted (KIP-966)."""
    store(cluster, node_id).take_previous_epoch()
    start(cluster, node_id)


def publish(cluster: MiniCluster) -> None:
    """Wait until each broker shows all that is committed now."""
    running = inside(cluster)
    committed = running.committed.offset
    publishers = [process.publisher for process in running.processes.values()]
    cluster.wait_until(
        lambda: all(p is None or p.offset >= committed for p in publishers), within="30s"
    )


def epoch(cluster: MiniCluster, node_id: str) -> int:
    """The epoch of a broker."""
    return cluster.node(int(node_id)).broker_epoch


def leader_epoch(cluster: MiniCluster, name: str) -> int:
    """The leader epoch of a partition, such as orders-0, of which a broker has told already."""
    topic, _, index = name.rpartition("-")
    cluster.wait_until(lambda: cluster.image.topics.named(topic) is not None, within="30s")
    return cluster.topic(topic)[int(index)].leader_epoch


def dynamic_configs(cluster: MiniCluster, node_id: str) -> dict[str, str]:
    """The configs that a broker has taken since its start, those of all brokers among them."""
    process = inside(cluster).processes.get(int(node_id))
    if process is None or process.broker is None:
        return {}
    levels = process.broker.apis.state.broker_levels
    return {**levels.dynamic_default, **levels.dynamic}


def partition(cluster: MiniCluster, node_id: str, name: str) -> Partition:
    """A replica, such as orders-0, on a broker that runs."""
    topic, _, index = name.rpartition("-")
    replicas = inside(cluster).processes[int(node_id)].replicas
    assert replicas is not None
    topic_id = cluster.image.topics.ids_by_name[topic]
    return replicas.partitions[topic_id, int(index)]


def replica_log(cluster: MiniCluster, node_id: str, name: str) -> ReplicaLog:
    """The log of a replica."""
    return partition(cluster, node_id, name).replica_log


def store(cluster: MiniCluster, node_id: str) -> ReplicaStore:
    """What a broker stores."""
    return ReplicaStore(inside(cluster).disks[int(node_id)])


def log_dirs(cluster: MiniCluster, node_id: str) -> Sequence[str]:
    """The names of its directories."""
    running = inside(cluster)
    return running.node_configs.get(int(node_id), running.config).log_dirs


def end(cluster: MiniCluster, node_id: str, name: str) -> int:
    """The end of a log."""
    return replica_log(cluster, node_id, name).log.end_offset


def begin(cluster: MiniCluster, node_id: str, name: str) -> int:
    """The start of a log."""
    return replica_log(cluster, node_id, name).log.start_offset


def size(cluster: MiniCluster, node_id: str, name: str) -> int:
    """The bytes of a log."""
    return partition_bytes(partition(cluster, node_id, name))


def segments(cluster: MiniCluster, node_id: str, name: str) -> int:
    """How many segments a log has."""
    return len(segments_of(replica_log(cluster, node_id, name).log))


def lag(cluster: MiniCluster, node_id: str, name: str) -> int:
    """How far a log is behind its high watermark."""
    replica = partition(cluster, node_id, name)
    return max(replica.high_watermark - replica.log_end_offset, 0)


def directory(cluster: MiniCluster, node_id: str, name: str) -> str | None:
    """The directory of a replica; None for one that a broker has not or has not opened yet."""
    stored = store(cluster, node_id).partition_file(name)
    if stored is None:
        return None
    process = inside(cluster).processes.get(int(node_id))
    if process is not None and process.replicas is not None:
        key = stored.topic_id, int(name.rpartition("-")[2])
        if key not in process.replicas.partitions:
            return None
    return log_dirs(cluster, node_id)[store(cluster, node_id).directory_ids.index(stored.directory)]


def works(cluster: MiniCluster, node_id: str, name: str) -> bool:
    """A directory has not failed."""
    ids = store(cluster, node_id)
    return ids.directory_ids[log_dirs(cluster, node_id).index(name)] in ids.online_directories


def fail_directory(cluster: MiniCluster, node_id: str, name: str) -> None:
    """Let a directory fail."""
    node = int(node_id)
    cluster.fail_dir(node, log_dirs(cluster, node_id).index(name))
    cluster.wait_until(lambda: not works(cluster, node_id, name), within="30s")


def roll(cluster: MiniCluster, node_id: str, name: str) -> None:
    """Begin a segment, so that all records so far may be compacted."""
    with inside(cluster).rt.exclusive():
        log = replica_log(cluster, node_id, name)
        log.roll(log.log.end_offset, inside(cluster).rt.record_time_ms())


def cleaned(cluster: MiniCluster, node_id: str, name: str) -> int:
    """The offset up to which a log is compacted."""
    return replica_log(cluster, node_id, name).log.cleaned_offset


class UncleanElections:
    """Counts them, as a controller's UncleanLeaderElectionsPerSec does."""

    def __init__(self) -> None:
        self.count = 0

    def on_committed(self, batch: RecordBatch) -> None:
        """Count the partitions that begin to recover (PartitionRegistration.electionWasUnclean)."""
        self.count += sum(
            isinstance(change.record, PartitionChangeRecord)
            and change.record.leader_recovery_state == RECOVERING
            for change in batch.metadata_records
        )

    def close(self) -> None:
        """Nothing to free."""


COMMANDS: Mapping[str, Callable[..., object]] = {
    "stop": stop,
    "start": start,
    "start-unclean": start_unclean,
    "publish": publish,
    "epoch": epoch,
    "dynamic-configs": dynamic_configs,
    "leader-epoch": leader_epoch,
    "begin": begin,
    "end": end,
    "size": size,
    "segments": segments,
    "lag": lag,
    "directory": directory,
    "works": works,
    "fail-directory": fail_directory,
    "roll": roll,
    "cleaned": cleaned,
}


def main(text: str) -> None:
    """Serve until the input ends."""
    warnings.simplefilter("ignore")
    shape = json.loads(text)
    left_out = unserved((shape["config"], *shape["node_configs"].values()))
    if left_out is not None:
        said(left_out=left_out)
        return
    try:
        cluster = cluster_of(shape).start()
        replace_disks(cluster, shape)
    except UserError as error:
        said(error=str(error))
        return
    said(
        brokers=cluster.bootstrap_servers,
        controllers=cluster.bootstrap_controllers,
        cluster_id=cluster.cluster_id,
    )
    elections = UncleanElections()
    sink = inside(cluster).rt.actor("metadata-sink")
    assert sink is not None
    sink.deliver(Follow(elections))
    commands = {**COMMANDS, "unclean-elections": lambda _: elections.count}
    for line in sys.stdin:
        name, *arguments = line.split()
        said(value=commands[name](cluster, *arguments))


if __name__ == "__main__":
    main(sys.argv[1])
