"""The state of a broker's replica manager, below the requests and metadata that change it.

Source:  ReplicaManager (allPartitions, logManager, the purgatories, replicaFetcherManager).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from minicluster.channel.controller_channel import CorrelationIds
from minicluster.configs.dynamic_broker import (
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    LOG_DIRS_MAX_RATE,
    broker_levels,
)
from minicluster.configs.effective import BrokerLevels
from minicluster.faults import Faults
from minicluster.java_order import scala_map_order
from minicluster.metadata.cordoned import cordoned_directories
from minicluster.metadata.image.cluster import Endpoint
from minicluster.metadata.image.configs import (
    BROKER,
    CLUSTER_DEFAULT,
    CORDONED_LOG_DIRS,
    MIN_ISR,
    TOPIC,
)
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.api import highest_version
from minicluster.protocol.messages import FetchRequest, ListOffsetsRequest
from minicluster.replica.broker_context import BrokerContext, BrokerView
from minicluster.replica.config import LogConfig, ReplicaManagerConfig
from minicluster.replica.errors import ReplicaError
from minicluster.replica.fetching.fetch_session import FetchSessionCache
from minicluster.replica.fetching.fetcher import Fetcher
from minicluster.replica.log_manager import Disk, ReplicaStore, log_name
from minicluster.replica.partition.leadership import stop_replica
from minicluster.replica.partition.partition import Partition
from minicluster.replica.replication_quota import throttled_replicas
from minicluster.replica.requests.purgatory import Key
from minicluster.replica.to_controller.alter_partition_manager import AlterPartitionManager
from minicluster.replica.to_controller.directory_assignments import DirectoryAssignments
from minicluster.replica.to_controller.replica_state_reports import ReplicaStateReports
from minicluster.rules import Rules
from minicluster.values import replace

if TYPE_CHECKING:
    from minicluster.replica.add_partitions_to_txn import TransactionVerifier

LEADER_THROTTLED_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS = "follower.replication.throttled.replicas"
TOPIC_IDS_FROM = 13  # the first version of Produce and Fetch with topic ids (KIP-516)


class ReplicaManagerState(BrokerContext):
    """The partitions, logs and fetchers of a broker, with what each partition sees of the broker.

    Shapes:  a partition is in ``partitions`` or, while its log directory has failed, in
             ``offline``. moving: the partitions with a future replica; preferred_directories: where
             logs by name are to be made that are not there yet (AlterReplicaLogDirs). verifier:
             None where no transaction is verified.
    """

    alter_partition_manager: AlterPartitionManager

    def __init__(
        self,
        config: ReplicaManagerConfig,
        disk: Disk,
        *,
        ids: CorrelationIds | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
    ) -> None:
        super().__init__(config, ids=ids, rules=rules, faults=faults)
        self.store = ReplicaStore(disk)
        self.image = MetadataImage.EMPTY
        self._keys: dict[tuple[str, int], Key | None] = {}  # by name, in this image
        self._named: dict[tuple[str, int], Partition] = {}  # likewise, of those in partitions
        self._log_configs: dict[str, LogConfig] = {}  # by topic, in this image
        self._min_isrs: dict[str, int] = {}  # likewise
        self.partitions: dict[Key, Partition] = {}
        self.offline: dict[Key, None] = {}
        self.fetchers: dict[int, Fetcher] = {}
        self.moving: dict[Key, None] = {}
        self.copy_is_due = False
        self.preferred_directories: dict[str, uuid.UUID] = {}
        self.fetch_sessions = FetchSessionCache(config.fetch_session_slots, config.incarnation)
        self.in_controlled_shutdown = False
        self.verifier: TransactionVerifier | None = None
        self.alter_partition_manager = AlterPartitionManager(self)
        self.assignments = DirectoryAssignments(self)
        self.replica_states = ReplicaStateReports(self)

    # --- metadata -----------------------------------------------------------------------------

    def publish(self, image: MetadataImage) -> None:
        """Take a newer image; followers are judged by it from now on."""
        before, self.image = self.image, image
        self._keys.clear()
        self._named.clear()
        self._log_configs.clear()
        self._min_isrs.clear()
        self.view = BrokerView(self.view.broker_epoch, image.cluster.brokers.rows)
        brokers, others = image.cluster.brokers.rows, before.cluster.brokers.rows
        if brokers is not others:  # a follower may be out of date
            changed = {n for n in {*brokers, *others} if brokers.get(n) is not others.get(n)}
            self.fetch_sessions.read_all_again(changed)
        if image.features is not before.features or before is MetadataImage.EMPTY:
            self._set_versions()

    def _set_versions(self) -> None:
        """Send requests in the versions that the metadata.version allows."""
        version = self.image.metadata_version
        self.sends_recovery_state = version.leader_recovery_supported
        self.fetcher_config = replace(
            self.config.fetcher,
            fetch_version=min(
                version.fetch_request_version, highest_version(self.rules, FetchRequest)
            ),
            list_offsets_version=min(
                version.list_offsets_request_version,
                highest_version(self.rules, ListOffsetsRequest),
            ),
        )

    def min_isr_of(self, topic: str) -> int:
        """min.insync.replicas of the topic, else of this broker, of the cluster, or static."""
        known = self._min_isrs.get(topic)
        if known is not None:
            return known
        configs, broker = self.image.configs, str(self.broker_id)
        places = ((TOPIC, topic), (BROKER, broker), (BROKER, CLUSTER_DEFAULT))
        values = (configs.value(*place, MIN_ISR) for place in places)
        given = next((int(value) for value in values if value is not None), None)
        minimum = self.config.min_insync_replicas if given is None else given
        self._min_isrs[topic] = minimum
        return minimum

    def log_config_of(self, topic: str) -> LogConfig:
        """The configs of a topic's logs on this broker."""
        config = self._log_configs.get(topic)
        if config is None:
            config = LogConfig.of(self.image.configs.of(TOPIC, topic), self.broker_levels)
            self._log_configs[topic] = config
        return config

    def take_throttled_rates(self) -> None:
        """Throttle replication as this broker's configs say now.

        Source:  BrokerConfigHandler.processConfigChanges.
        """
        quotas = self.quotas
        quotas.leader.bytes_per_second = self._throttled_rate(LEADER_THROTTLED_RATE)
        quotas.follower.bytes_per_second = self._throttled_rate(FOLLOWER_THROTTLED_RATE)
        quotas.alter_log_dirs.bytes_per_second = self._throttled_rate(LOG_DIRS_MAX_RATE)

    def _throttled_rate(self, name: str) -> int | None:
        places = ((BROKER, str(self.broker_id)), (BROKER, CLUSTER_DEFAULT))
        values = (self.image.configs.value(*place, name) for place in places)
        return next((int(value) for value in values if value is not None), None)

    def take_throttled_replicas(self, topic: str) -> None:
        """Throttle the replicas that a topic's configs name now; a deleted topic has none.

        Source:  TopicConfigHandler.processConfigChanges.
        """
        configs = self.image.configs.of(TOPIC, topic)
        for quota, name in (
            (self.quotas.leader, LEADER_THROTTLED_REPLICAS),
            (self.quotas.follower, FOLLOWER_THROTTLED_REPLICAS),
        ):
            quota.throttle(topic, throttled_replicas(configs.get(name), self.broker_id))

    @property
    def broker_levels(self) -> BrokerLevels:
        """The configs of this broker."""
        configs = self.image.configs
        return broker_levels(
            configs.of(BROKER, str(self.broker_id)),
            configs.of(BROKER, CLUSTER_DEFAULT),
            self.config.static,
        )

    @property
    def cordoned_directories(self) -> tuple[uuid.UUID, ...]:
        """The log directories that get no new replica."""
        config = self.config
        static = config.static.get(CORDONED_LOG_DIRS, "")
        return cordoned_directories(self.image, self.broker_id, config.dir_names, static) or ()

    # --- lookups ------------------------------------------------------------------------------

    def key_of(self, topic: str, topic_id: uuid.UUID, index: int, version: int) -> Key | None:
        """The key of a partition in a Produce or Fetch request; None for an unknown topic."""
        if version >= TOPIC_IDS_FROM:
            return (topic_id, index) if self.image.topics.get(topic_id) is not None else None
        return self.key_named(topic, index)

    def key_named(self, topic: str, index: int) -> Key | None:
        """The key of a partition; None for an unknown topic."""
        named = (topic, index)
        if named not in self._keys:
            image_topic = self.image.topics.named(topic)
            self._keys[named] = None if image_topic is None else (image_topic.id, index)
        return self._keys[named]

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The name of a topic; None for an unknown id."""
        topic = self.image.topics.get(topic_id)
        return None if topic is None else topic.name

    def is_known(self, topic: str, index: int) -> bool:
        """The metadata has this partition."""
        if self.local_named(topic, index) is not None:
            return True
        key = self.key_named(topic, index)
        return key is not None and self.image.topics.partition(*key) is not None

    def endpoint(self, broker_id: int) -> tuple[Endpoint, str | None] | None:
        """The place where clients reach a live broker, and its rack; None where they cannot.

        Source:  KRaftMetadataCache.getAliveBrokerNode.
        """
        broker = self.image.cluster.broker(broker_id)
        if broker is None or broker.fenced:
            return None
        endpoints = (e for e in broker.endpoints if e.name == self.config.listener)
        return next(((endpoint, broker.rack) for endpoint in endpoints), None)

    def endpoints(self, broker_ids: Iterable[int]) -> list[tuple[int, Endpoint, str | None]]:
        """Those of several brokers that clients can reach, in the order of a Scala map (KIP-951).

        Source:  KafkaApis.handleProduceRequest, handleFetchRequest (nodeEndpoints).
        """
        places = {number: self.endpoint(number) for number in broker_ids}
        reachable = {number: place for number, place in places.items() if place is not None}
        return [
            (number, *reachable[number])
            for number in scala_map_order(reachable, lambda number: number)
        ]

    def hosted(self, key: Key | None) -> Partition:
        """The local replica, whatever the metadata has.

        Errors:  KAFKA_STORAGE_ERROR (its directory has failed), UNKNOWN_TOPIC_OR_PARTITION.
        Source:  ReplicaManager.getPartition (HostedPartition).
        """
        local = self.partitions.get(key) if key is not None else None
        if local is not None:
            return local
        if key is not None and key in self.offline:
            raise ReplicaError(ErrorCode.KAFKA_STORAGE_ERROR, "its log directory has failed")
        raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def partition(self, key: Key | None) -> Partition:
        """The local replica.

        Errors:  KAFKA_STORAGE_ERROR (its directory has failed), NOT_LEADER_OR_FOLLOWER (no replica
                 on this broker), UNKNOWN_TOPIC_OR_PARTITION (not in the metadata).
        Source:  ReplicaManager.getPartitionOrError.
        """
        local = self.partitions.get(key) if key is not None else None
        if local is not None:
            return local
        if (
            key is not None
            and key not in self.offline
            and self.image.topics.partition(*key) is not None
        ):
            raise ReplicaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no replica here")
        return self.hosted(key)

    def partition_named(self, topic: str, index: int) -> Partition:
        """The local replica of a partition in a request with topic names.

        Errors:  as ``partition``.
        """
        local = self.local_named(topic, index)
        return self.partition(self.key_named(topic, index)) if local is None else local

    def local_named(self, topic: str, index: int) -> Partition | None:
        """The local replica of a partition by the name of its topic; None where there is none."""
        named = (topic, index)
        local = self._named.get(named)
        if local is None and (key := self.key_named(topic, index)) is not None:
            local = self.partitions.get(key)
            if local is not None:
                self._named[named] = local
        return local

    def remove_partition(self, key: Key) -> Partition | None:
        """Take a local replica out, if there is one."""
        self._named.clear()
        return self.partitions.pop(key, None)

    def current_leader(self, key: Key | None) -> tuple[int, int]:
        """Leader and leader epoch by the metadata, -1 where not known (KIP-951)."""
        registration = None if key is None else self.image.topics.partition(*key)
        if registration is None:
            return -1, -1
        return registration.leader, registration.leader_epoch

    # --- replicas -----------------------------------------------------------------------------

    def take_offline(self, logs: Collection[str], now_ms: int) -> None:
        """Stop the replicas whose logs are lost, and complete what waits for them.

        Source:  ReplicaManager.handleLogDirFailure, markPartitionOffline.
        """
        keys = [k for k, p in self.partitions.items() if log_name(p.topic, k[1]) in logs]
        for key in keys:
            self.stop_fetching(key)
            stop_replica(self.partitions[key], delete=False)
            self.remove_partition(key)
            # Not to be created again in another directory, where it would begin empty and, as a
            # member of the ISR, could be elected without what is committed (KAFKA-16234).
            self.offline[key] = None
        # After all of them: a fetch that waits for several responds with each as it is now.
        for key in keys:
            self.delayed.check_and_complete_all(key, now_ms)

    def fetch_from(self, leader_id: int, partition: Partition) -> None:
        """Fetch a partition from a leader, from its log end on."""
        fetcher = self.fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self.fetchers[leader_id] = Fetcher(self, leader_id)
        fetcher.add(partition)

    def stop_fetching(self, key: Key) -> None:
        """Stop fetching a partition."""
        for fetcher in self.fetchers.values():
            if fetcher.remove(key):
                return

    def poll_fetchers(self, now_ms: int) -> None:
        """Let the fetchers send, and drop those without partitions."""
        for leader_id, fetcher in list(self.fetchers.items()):
            fetcher.poll(now_ms)
            if fetcher.is_idle:
                del self.fetchers[leader_id]

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks to disk that may have changed since the last time."""
        present = (p for p in self.unwritten if self.partitions.get(p.key) is p)
        self.store.checkpoint({p.name: p.high_watermark for p in present})
        self.unwritten.clear()
