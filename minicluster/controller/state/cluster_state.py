"""The controller's state: an image, and the indexes that follow it record by record.

**Invariant:** ``apply`` is the only mutator. It takes what the fold of every node has made of the
records and touches the index entries of their own partitions, so that its cost does not grow with
the cluster. Only the active controller reads the indexes, so those of a standby wait until then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from uuid import UUID

from minicluster.controller.errors import ControllerFault, Reason, Rejected
from minicluster.controller.settings import (
    DEFAULTS,
    UNCLEAN_ELECTION,
    ControllerSettings,
)
from minicluster.controller.state.broker_heartbeat_manager import BrokerHeartbeatManager
from minicluster.controller.state.indexes import Indexes, TopicPartition
from minicluster.controller.state.offline_replicas import OfflineReplicas
from minicluster.controller.state.offset_control import Point
from minicluster.controller.state.pending_alter_isr import PendingAlterIsr
from minicluster.faults import Faults
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, MIN_ISR, TOPIC
from minicluster.metadata.image.directory_id import MIGRATING, UNASSIGNED
from minicluster.metadata.image.features import FeaturesImage
from minicluster.metadata.image.folded_run import FoldedRun
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.records import (
    ClearElrRecord,
    RemoveTopicRecord,
)
from minicluster.rules import Rules
from minicluster.values import Value

UNINDEXED_RUNS_MAX = 512
UNINDEXED_RECORDS_MAX = 200_000


class Gates(Value, kw_only=True):
    """The finalized features and the rules of the release, as partition changes need them.

    They change with FeatureLevelRecords only.
    """

    rules: Rules
    metadata_version: MetadataVersion
    elr_enabled: bool = False


class ClusterState:
    """The state of a controller after a prefix of the log.

    Shapes:  heartbeats is the soft state of the active controller, None on all others.
    Units:   offset is that of the last record applied, -1 before the first.
    """

    def __init__(
        self,
        *,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        settings: ControllerSettings | None = None,
        image: MetadataImage = MetadataImage.EMPTY,
        offset: int = -1,
    ) -> None:
        self.rules = rules
        self.faults = faults
        self.settings = settings or ControllerSettings()
        self.heartbeats: BrokerHeartbeatManager | None = None
        self.offline_replicas = OfflineReplicas()
        self.pending_alter_isr = PendingAlterIsr()
        self.planted_hits: list[str] = []  # since they were last taken
        self.reset(image, offset)

    def reset(self, image: MetadataImage, offset: int) -> None:
        """Go to another image altogether: a snapshot, or back to what is committed."""
        self.image = image
        self.offset = offset
        self._indexed = image  # where the indexes begin, as long as there are none
        self._indexes: Indexes | None = None
        self._unindexed: deque[FoldedRun] = deque()
        self._unindexed_records = 0
        self._gates: tuple[FeaturesImage, Gates] | None = None

    @step
    def revert(self, committed: Point) -> None:
        """Go back to what is committed when the leadership is lost, if anything more is decided."""
        if self.image is not committed.image:
            self.reset(committed.image, committed.end_offset - 1)

    @step
    def apply(self, run: FoldedRun) -> None:
        """Apply records that were folded from this image."""
        self.image = run.after
        self.offset = run.last_offset
        self._unindexed.append(run)
        self._unindexed_records += len(run.records)
        # A fault of the shipped index is raised where the record is applied.
        if self.heartbeats is not None or self.rules.clear_elr_skips_index:
            self._index()
        elif (
            len(self._unindexed) > UNINDEXED_RUNS_MAX
            or self._unindexed_records > UNINDEXED_RECORDS_MAX
        ):
            # The oldest, not all: both standbys would be busy for a second at the same record.
            self._index(UNINDEXED_RUNS_MAX, UNINDEXED_RECORDS_MAX)

    @property
    def indexes(self) -> Indexes:
        """The indexes of the image."""
        return self._index()

    def _index(self, runs_max: int = 0, records_max: int = 0) -> Indexes:
        """The indexes, which lack this much at most."""
        indexes = self._indexes
        if indexes is None:
            indexes = self._indexes = Indexes.of(self._indexed, self.rules)
            self._indexed = MetadataImage.EMPTY
        while len(self._unindexed) > runs_max or self._unindexed_records > records_max:
            run = self._unindexed.popleft()
            self._unindexed_records -= len(run.records)
            self._index_run(indexes, run)
        return indexes

    def _index_run(self, indexes: Indexes, run: FoldedRun) -> None:
        for created in run.created:
            indexes.add_topic(created.name)
        indexes.follow(run.steps)
        message = run.message
        if isinstance(message, RemoveTopicRecord):
            indexes.remove_topic(run.before.topics.by_id[message.topic_id])
        elif isinstance(message, ClearElrRecord):
            self._clear_elrs(indexes, run)

    def _clear_elrs(self, indexes: Indexes, run: FoldedRun) -> None:
        name = run.message.topic_name
        if self.rules.clear_elr_skips_index:
            return
        elr = indexes.elr
        if not name:
            elr.clear()
            return
        for broker_id in elr.brokers():
            elr.remove_topic(broker_id, run.before.topics.ids_by_name[name])

    def hit(self, fault: str) -> None:
        """Count that a planted fault has acted."""
        self.planted_hits.append(fault)

    def take_hits(self) -> list[str]:
        """Take the planted faults that have acted, each once."""
        hits, self.planted_hits = list(dict.fromkeys(self.planted_hits)), []
        return hits

    def check_indexes(self) -> tuple[str, ...]:
        """The differences of the indexes from the image, a line each (E41)."""
        return self.indexes.differences(Indexes.of(self.image, self.rules))

    # For operations.

    @property
    def gates(self) -> Gates:
        """The features of the cluster and the rules of the release.

        Errors:  ReplayError before the first metadata.version, unless the release assumes one: the
                 logs of Kafka 3.0 to 3.2 never set it.
        Source:  FeatureControlManager.metadataVersion (3.9), metadataVersionOrThrow (4.x).
        """
        features = self.image.features
        if self._gates is None or self._gates[0] is not features:
            if self.rules.metadata_version_is_assumed:
                version = self.image.metadata_version
            else:
                version = features.require_metadata_version()
            gates = Gates(
                rules=self.rules,
                metadata_version=version,
                elr_enabled=features.elr_enabled and version.elr_supported(self.rules),
            )
            self._gates = (features, gates)
        return self._gates[1]

    def active_heartbeats(self) -> BrokerHeartbeatManager:
        """The heartbeat state.

        Errors:  ControllerFault on a controller that is not active.
        """
        if self.heartbeats is None:
            raise ControllerFault("ClusterControlManager is not active.")
        return self.heartbeats

    def check_broker_epoch(self, broker_id: int, epoch: int) -> BrokerRegistration:
        """The registration of a sender whose request has its epoch.

        Errors:  Rejected with STALE_BROKER_EPOCH.
        Source:  ClusterControlManager.checkBrokerEpoch.
        """
        broker = self.image.cluster.broker(broker_id)
        if broker is None:
            raise Rejected(
                ErrorCode.STALE_BROKER_EPOCH,
                f"No broker registration found for broker id {broker_id}",
                Reason.NOT_REGISTERED,
            )
        if broker.epoch != epoch:
            raise Rejected(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
                Reason.BROKER_EPOCH_MISMATCH,
            )
        return broker

    def default_dir(self, broker_id: int) -> UUID:
        """The directory of a new replica on a broker.

        Source:  ClusterControlManager.defaultDir.
        """
        broker = self.image.cluster.broker(broker_id)
        if broker is None:
            return UNASSIGNED
        if not broker.log_dirs:
            return MIGRATING
        return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED

    def acceptor(
        self,
        partition: PartitionRegistration,
        is_active: Callable[[int], bool] | None = None,
        *,
        key: TopicPartition,
    ) -> Callable[[int], bool]:
        """The predicate of a replica that could lead: its broker is active and its log is not lost.

        Its directory is online (KIP-858), and no report has named it as offline (KIP-589).
        """
        active = is_active or self.image.cluster.is_active

        def acceptable(replica: int) -> bool:
            if not active(replica):
                return False
            broker = self.image.cluster.broker(replica)
            if broker is None:
                return False
            if replica not in partition.replicas:
                # An ELR can name a replica that was removed. Asking for its directory would fail,
                # and each controller in turn would resign over this partition.
                if self.rules.removed_replica_stays_in_elr:
                    raise ControllerFault(f"Replica {replica} is not assigned to this partition.")
                return True
            if self.offline_replicas.is_offline(broker, key):
                return False
            return broker.has_online_dir(partition.directory_of(replica))

        return acceptable

    def topic_config(self, topic: str, name: str) -> str:
        """A topic's effective value: its own, this node's, the cluster's, the static, the default.

        Source:  ConfigurationControlManager.getTopicConfig.
        """
        configs, node = self.image.configs, str(self.settings.node_id)
        for resource in ((TOPIC, topic), (BROKER, node), (BROKER, CLUSTER_DEFAULT)):
            value = configs.value(*resource, name)
            if value is not None:
                return value
        return self.settings.static_config.get(name, DEFAULTS.get(name, ""))

    def unclean_election_allowed(self, topic: str) -> bool:
        """True for a topic that chooses an unclean leader over none."""
        return self.topic_config(topic, UNCLEAN_ELECTION).strip().lower() == "true"

    def min_isr(self, topic: TopicImage) -> int:
        """The effective min.insync.replicas: at most as many as partition 0 has replicas."""
        text = self.topic_config(topic.name, MIN_ISR).strip()
        # Values of broker configs are checked by the broker that forwards them, not here. One that
        # is not a number must not end each controller that meets it.
        wanted = int(text) if text.isdecimal() else self.settings.static_min_isr
        # A minimum above the number of replicas can never be met; it counts as all of them, by
        # partition 0 as in Kafka, though others may have more or fewer.
        first = topic.partitions.get(0)
        return wanted if first is None else min(wanted, len(first.replicas))
