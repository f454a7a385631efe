"""The cluster of a metadata log: it continues from the end of that log.

Each node begins with a snapshot of the log's last state, under the offset and the epoch at which
the log ends. Brokers that the log has unfenced continue with their incarnations and epochs, as if
nothing had happened; the others are down. Where none is unfenced, because the cluster was stopped,
all of them start and register again. The records of partitions are not in a metadata log: every
partition begins empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from uuid import UUID

from minicluster.actors.nodes.config import BROKER_RACK, ClusterConfig
from minicluster.actors.nodes.disk import Disk
from minicluster.errors import UserError
from minicluster.log.checkpoint import Snapshot, encode_snapshot
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.log import Log
from minicluster.log.quorum_state import QUORUM_STATE_NAME, QuorumState
from minicluster.metadata.errors import MetadataLost
from minicluster.metadata.image.cluster import BrokerRegistration, Endpoint
from minicluster.metadata.log_end import LogEnd, log_end
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.metadata.snapshot import image_records
from minicluster.protocol.records import KRaftVersionRecord, VersionedRecord, VotersRecord
from minicluster.replica.log_manager import ReplicaStore
from minicluster.rules import Rules
from minicluster.scenario.scenario import FIRST_CONTROLLER
from minicluster.security.protocols import LISTENER
from minicluster.values import Value, replace
from minicluster.verify.evidence.reading import read_run

CONTROLLERS_WHERE_UNKNOWN = 3
Address = tuple[str, int]


def read_log_end(path: Path) -> LogEnd:
    """Read a metadata log, and fold the part of it that is committed.

    Shapes:  path: a run, the folders of several controllers or of one, a segment, a checkpoint.
    Errors:  UserError (NotALog, LogCorruption, …) with one line that names the file, for a path
             without a log, a broken log, or one whose state cannot be known.
    """
    run = read_run(path, path.name)
    run.check_state()
    return log_end(path, run.nodes, run.committed, run.start)


class Adoption(Value, kw_only=True):
    """The end of a log, and the nodes of the cluster that continues from it.

    Shapes:  every tuple is ascending. voter_ids is a part of controller_ids; a node in broker_ids
             and controller_ids is a combined one; starting: the brokers that run at first.
    """

    end: LogEnd
    broker_ids: tuple[int, ...]
    controller_ids: tuple[int, ...]
    voter_ids: tuple[int, ...]
    starting: tuple[int, ...]

    @classmethod
    def of(cls, end: LogEnd) -> Adoption:
        """The nodes that a log names; controllers of their own where it names none.

        Errors:  UserError for a log without brokers.
        """
        brokers = end.image.cluster.brokers.rows
        if not brokers:
            why = "no broker is registered where it ends, so that there is no cluster to continue"
            raise UserError(f"{end.path}: {why}")
        registered = tuple(end.image.cluster.controllers.rows)
        free = (node for node in count(FIRST_CONTROLLER) if node not in brokers)
        voters = end.voter_ids or registered or tuple(islice(free, CONTROLLERS_WHERE_UNKNOWN))
        active = tuple(sorted(broker.id for broker in brokers.values() if broker.active))
        return cls(
            end=end,
            broker_ids=tuple(sorted(brokers)),
            controller_ids=tuple(sorted({*voters, *registered})),
            voter_ids=tuple(sorted(voters)),
            starting=active or tuple(sorted(brokers)),
        )

    @property
    def combined(self) -> tuple[int, ...]:
        """The nodes that are a broker and a controller."""
        return tuple(node for node in self.broker_ids if node in self.controller_ids)

    @property
    def rules(self) -> Rules:
        """The release that plays it: the newest that reads its metadata.version."""
        newest, version = Rules.KAFKA_4_3, self.end.image.metadata_version
        return newest if version >= newest.metadata_version_lowest else Rules.KAFKA_3_9

    def continued(self) -> dict[int, BrokerRegistration]:
        """The registrations with which brokers continue."""
        brokers = self.end.image.cluster.brokers.rows
        return {node: brokers[node] for node in self.starting if brokers[node].active}

    def configs(
        self, config: ClusterConfig, settings: Mapping[str, object]
    ) -> dict[int, ClusterConfig]:
        """The settings of brokers, with the racks and as many log directories as the log has."""
        configs: dict[int, ClusterConfig] = {}
        for broker in self.end.image.cluster.brokers.values():
            own = config
            if broker.rack is not None and BROKER_RACK not in settings:
                own = replace(own, rack=broker.rack)
            if broker.log_dirs and len(broker.log_dirs) != len(config.log_dirs):
                own = replace(own, log_dirs=tuple(f"d{n}" for n in range(len(broker.log_dirs))))
            configs[broker.id] = own
        return configs

    def directories(self, node_id: int) -> tuple[UUID, ...]:
        """The log directories of a node, that of its metadata first; none where none is named."""
        of_metadata = self.end.directories.get(node_id)
        first = () if of_metadata is None else (of_metadata,)
        broker = self.end.image.cluster.broker(node_id)
        if broker is None:
            return first
        return tuple(dict.fromkeys((*first, *broker.log_dirs))) if broker.log_dirs else ()

    def addresses(self) -> tuple[dict[int, Address], dict[int, Address]]:
        """The addresses of controllers and those of brokers; none unless all of them differ."""
        image = self.end.image.cluster
        of_brokers = {b.id: _address(b.endpoints) for b in image.brokers.values() if b.endpoints}
        of_controllers = {
            c.id: _address(c.endpoints) for c in image.controllers.values() if c.endpoints
        }
        for voter in () if self.end.voters is None else self.end.voters.voters:
            if voter.endpoints:
                first = voter.endpoints[0]
                of_controllers[voter.voter_id] = first.host, first.port
        every = [*of_brokers.values(), *of_controllers.values()]
        return (of_controllers, of_brokers) if len(set(every)) == len(every) else ({}, {})

    def fill(self, disks: Mapping[int, Disk], rules: Rules, folds: SharedFolds) -> None:
        """Write what each node has on its disk at the start.

        Errors:  UserError for a state that the log's metadata.version cannot carry.
        """
        end, content = self.end, _snapshot(self.end, rules, folds)
        for disk in disks.values():
            log = disk.logs[METADATA_DIRECTORY] = Log(end.end_offset)
            log.snapshots[end.end_offset, end.epoch] = content
        for node in self.voter_ids:
            disks[node].write(QUORUM_STATE_NAME, QuorumState(leader_epoch=end.quorum_epoch))
        continued = self.continued()
        for broker in end.image.cluster.brokers.values():
            if broker.id not in continued:
                ReplicaStore(disks[broker.id]).write_clean_shutdown(broker.epoch)


def _address(endpoints: Sequence[Endpoint]) -> Address:
    preferred = (e for e in endpoints if e.name == LISTENER)
    endpoint = next(chain(preferred, endpoints))
    return endpoint.host, endpoint.port


def _snapshot(end: LogEnd, rules: Rules, folds: SharedFolds) -> bytes:
    if end.checkpoint is not None:
        folds.remember_snapshot(end.checkpoint.content, end.checkpoint)
        folds.remember_image(end.checkpoint.records, end.end_offset - 1, end.image)
        return end.checkpoint.content
    control: tuple[KRaftVersionRecord | VotersRecord, ...] = ()
    if end.kraft_version and end.voters is not None:
        version = KRaftVersionRecord(version=0, kraft_version=end.kraft_version)
        control = (version, end.voters)
    try:
        records: tuple[VersionedRecord, ...] = tuple(image_records(end.image, rules))
    except MetadataLost as error:
        raise UserError(f"{end.path}: {error}") from None
    snapshot = Snapshot(records=records, last_contained_log_timestamp=end.time_ms, control=control)
    content = encode_snapshot(snapshot, epoch=end.epoch, timestamp_ms=end.time_ms)
    folds.remember_snapshot(content, snapshot)
    folds.remember_image(records, end.end_offset - 1, end.image)
    return content
