"""A run as a folder for each node, from which Apache Kafka's own nodes start.

    controller-<id>/   as in the run folder, and server.properties
    broker-<id>/       server.properties, and the log directories of the run with their indexes
    tls/               certificates of the nodes and of clients, where a listener of the run has TLS

It is written beside its place and renamed once it is whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from msgspec import Struct, field

from minicluster.actors.cluster.layout import config_of
from minicluster.actors.export.broker_directories import archive_name, directory_names
from minicluster.actors.export.conversion import (
    Address,
    TimeShift,
    coordinator_converted,
    metadata_converted,
    shifted,
)
from minicluster.actors.export.security import TLS_FOLDER, ExportedSecurity
from minicluster.actors.export.server_properties import (
    PROPERTIES_NAME,
    QuorumAddresses,
    broker_properties,
    controller_properties,
    run_settings,
)
from minicluster.actors.listeners.address import DEFAULT_PORT, LOOPBACK, PORT_MAX
from minicluster.configs.views import broker_default
from minicluster.errors import UserError
from minicluster.files import read_bytes
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import CHECKPOINT_SUFFIX
from minicluster.log.control import control_records
from minicluster.log.errors import InvalidBatch, LogError, NotALog
from minicluster.log.indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_indexes
from minicluster.log.locating import RUN_NAME
from minicluster.log.segment import LOG_SUFFIX, read_batches
from minicluster.log.text_files import properties_text
from minicluster.metadata.metadata_version import FEATURE_NAME, MetadataVersion
from minicluster.protocol.coordinator_records.described import record_types_of
from minicluster.protocol.records import (
    FeatureLevelRecord,
    KRaftVersionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from minicluster.replica.producers.snapshot_file import (
    SNAPSHOT_SUFFIX,
    decode_producers,
    encode_producers,
)
from minicluster.security.protocols import LISTENER, SecurityProtocol
from minicluster.values import Value
from minicluster.verify.evidence.run_header import DamagedHeader, RunHeader, read_header

LOWEST_LEVEL_OF_KAFKA_4 = 7  # 3.3-IV3
INDEX_INTERVAL_BYTES: int = broker_default("log.index.interval.bytes")


def controller_folder(controller_id: int) -> str:
    """The folder of a controller."""
    return f"controller-{controller_id}"


def broker_folder(broker_id: int) -> str:
    """The folder of a broker."""
    return f"broker-{broker_id}"


class Exported(Value, kw_only=True):
    """The folders of a run for Apache Kafka.

    Shapes:  note: of what has to be heeded before a start, None of nothing.
    """

    path: Path
    controllers: Mapping[int, Address]
    brokers: Mapping[int, Address]
    logs: int
    records: int
    note: str | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers, once they run."""
        return ",".join(f"{host}:{port}" for host, port in self.brokers.values())

    @property
    def properties(self) -> tuple[Path, ...]:
        """The ``server.properties`` of all nodes, the controllers' first."""
        folders = [*map(controller_folder, self.controllers), *map(broker_folder, self.brokers)]
        return tuple(self.path / folder / PROPERTIES_NAME for folder in folders)


class _Contents(Struct):
    """The findings of a pass over all batches."""

    kraft_version: int = 0
    level: int | None = None
    listeners: dict[str, SecurityProtocol] = field(default_factory=dict)  # of brokers
    controllers: SecurityProtocol = SecurityProtocol.PLAINTEXT
    folders: set[Path] = field(default_factory=set)
    records: int = 0

    def see_metadata(self, batch: RecordBatch) -> None:
        """Take the versions and the listeners that the log ends with."""
        for control in control_records(batch):
            if isinstance(control.message, KRaftVersionRecord):
                self.kraft_version = max(self.kraft_version, control.message.kraft_version)
        for versioned in batch.metadata_records:
            record = versioned.record
            match record:
                case FeatureLevelRecord(name=name) if name == FEATURE_NAME:
                    self.level = record.feature_level
                case RegisterBrokerRecord():
                    self.listeners = _protocols(record.end_points)
                case RegisterControllerRecord(end_points=(point, *_)):
                    self.controllers = SecurityProtocol.of(point.security_protocol)


def _protocols(points: Iterable[Any]) -> dict[str, SecurityProtocol]:
    return {point.name: SecurityProtocol.of(point.security_protocol) for point in points}


def export_run(
    run: Path,
    target: Path,
    *,
    port: int = DEFAULT_PORT,
    now_ms: int,
    users: Mapping[str, str] | None = None,
) -> Exported:
    """Write the folders of a run for Apache Kafka.

    Shapes:  port: that of the first broker; the other nodes follow, the controllers last, and
             behind them the further listeners of brokers. users: passwords of PLAIN by name.
    Units:   now_ms: the time of day that the end of the run is to have.
    Errors:  UserError for a run that Kafka cannot start from, and for a place that is taken;
             OSError with that place where it cannot be written.
    """
    header = _checked_header(run)
    place = _checked_place(target)
    nodes = (*header.brokers, *header.controllers)
    _check_ports(port, len(nodes), f"{len(nodes)} nodes")
    addresses = {node_id: (LOOPBACK, port + number) for number, node_id in enumerate(nodes)}
    shift = TimeShift(
        ended_ms=header.ended_at_ms or 0, epoch_ms=header.epoch_ms or 0, now_ms=now_ms
    )
    new = place.with_name(f".{place.name[:40]}.writing-{os.getpid()}")
    try:
        new.mkdir(parents=True)
        contents, note = _write(run, header, _Writer(new, place, addresses, shift), users or {})
        new.rename(place)
    except OSError as error:
        raise _about_the_target(error, new, target) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return Exported(
        path=target,
        controllers={node_id: addresses[node_id] for node_id in header.controllers},
        brokers={node_id: addresses[node_id] for node_id in header.brokers},
        logs=len(contents.folders),
        records=contents.records,
        note=_note(contents.level) or note,
    )


def _check_ports(port: int, count: int, of: str) -> None:
    """Errors:  UserError for a first port behind which there are not as many."""
    last = PORT_MAX + 1 - count
    if not isinstance(port, int) or not 1 <= port <= last:
        raise UserError(f"port: {port!r} is not one of 1 to {last}: {of} need ports")


def _checked_header(run: Path) -> RunHeader:
    """The header of a run that Kafka can start from.

    Errors:  NotALog where there is no run; UserError for one of another kind.
    """
    if not run.exists():
        raise NotALog(f"{run}: there is no such folder")
    if not (run / RUN_NAME).is_file():
        raise NotALog(f"{run}: not a run folder: it has no {RUN_NAME}")
    try:
        header = read_header(run / RUN_NAME)
    except DamagedHeader as error:
        raise NotALog(str(error)) from None
    if header.mode == "zookeeper":
        raise UserError(f"{run}: a run of ZooKeeper mode; Apache Kafka's KRaft nodes need a log")
    if header.mode == "outside":
        raise UserError(f"{run}: its controllers were of another process, which has their log")
    for node_id in set(header.brokers) & set(header.controllers):
        raise UserError(
            f"{run}: node {node_id} is broker and controller at once; that is not built"
        )
    parts = [
        *(run / controller_folder(node_id) for node_id in header.controllers),
        *(run / archive_name(node_id) for node_id in header.brokers),
    ]
    for part in parts:
        if not part.exists():
            why = "it is damaged, or of an earlier version; play it again"
            raise NotALog(f"{run}: it has no {part.name}: {why}")
    if not header.controllers:
        raise NotALog(f"{run}: it has no controllers")
    return header


def _checked_place(target: Path) -> Path:
    """The real path of a place that is free.

    Errors:  UserError for one that is taken.
    """
    place = Path(os.path.realpath(target))
    if place.exists() and not place.is_dir():
        raise UserError(f"{target}: is a file; name a new folder")
    if place.is_dir() and any(place.iterdir()):
        raise UserError(f"{target}: the folder is not empty; name a new one")
    return place


def _about_the_target(error: OSError, new: Path, target: Path) -> OSError:
    """The error with the place that the user named, not with the folder in the making.

    Shapes:  an error about another file, one of the run, stays as it is.
    """
    about = Path(os.fsdecode(error.filename or new))
    if about != new and new not in about.parents and about not in new.parents:
        return error
    reason = error.strerror or str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        reason = "there is a file in the place of a folder above it"
    return OSError(error.errno, f"cannot be written: {reason}", str(target))


def _note(level: int | None) -> str | None:
    if level is None or level >= LOWEST_LEVEL_OF_KAFKA_4:
        return None
    version = MetadataVersion(level)
    return f"metadata.version {version}: Apache Kafka 4 needs 3.3-IV3; take a release of 3.3 to 3.9"


def _write(
    run: Path, header: RunHeader, writer: _Writer, users: Mapping[str, str]
) -> tuple[_Contents, str | None]:
    """Write all files; -> what they have, and what has to be heeded of logins."""
    config = config_of(
        header.config,
        brokers=len(header.brokers),
        controllers=len(header.controllers),
        threaded=header.runtime == "threaded",
    )
    contents = writer.contents
    for node_id in header.controllers:
        writer.controller(run / controller_folder(node_id))
    quorum = QuorumAddresses(
        controllers={node_id: writer.addresses[node_id] for node_id in header.controllers},
        is_dynamic=contents.kraft_version > 0,
    )
    settings = run_settings(config, header.config)
    security = ExportedSecurity(
        brokers=contents.listeners or {LISTENER: SecurityProtocol.PLAINTEXT},
        controllers=contents.controllers,
        users=users,
        settings=settings,
    )
    of_all = settings | security.properties(writer.place)
    if security.has_tls:
        security.write_certificates(writer.new / TLS_FOLDER)
    for node_id in header.controllers:
        folder = controller_folder(node_id)
        values = controller_properties(node_id, quorum, log_dir=writer.place / folder)
        writer.put_properties(folder, of_all | values)
    listeners = _listener_addresses(header, writer.addresses, security.broker_listeners())
    for node_id in header.brokers:
        folder = broker_folder(node_id)
        writer.broker(run / archive_name(node_id), folder)
        log_dirs = [writer.place / folder / name for name in directory_names(config.log_dirs)]
        values = broker_properties(
            node_id,
            listeners[node_id],
            quorum,
            log_dirs=log_dirs,
            metadata_log_dir=None
            if config.metadata_log_dir is None
            else log_dirs[config.log_dirs.index(config.metadata_log_dir)],
            rack=config.rack_of(node_id),
        )
        writer.put_properties(folder, of_all | values)
    return contents, security.note()


def _listener_addresses(
    header: RunHeader, addresses: Mapping[int, Address], names: Sequence[str]
) -> dict[int, dict[str, Address]]:
    """The addresses of each broker by listener: its own, then those behind all nodes.

    Errors:  UserError where the ports end.
    """
    first = min(port for _, port in addresses.values())
    count, brokers = len(addresses), len(header.brokers)
    _check_ports(first, count + (len(names) - 1) * brokers, "the nodes and their listeners")
    return {
        node_id: {
            name: addresses[node_id]
            if not number
            else (LOOPBACK, first + count + (number - 1) * brokers + index)
            for number, name in enumerate(names)
        }
        for index, node_id in enumerate(header.brokers)
    }


class _Writer:
    """A folder in the making; its files name the place that it is renamed to."""

    def __init__(
        self, new: Path, place: Path, addresses: Mapping[int, Address], shift: TimeShift
    ) -> None:
        self.new = new
        self.place = place
        self.addresses = addresses
        self.contents = _Contents()
        self._shift = shift

    def put(self, name: str, content: bytes) -> None:
        """Write one file."""
        path = self.new / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def put_properties(self, folder: str, values: Mapping[str, str]) -> None:
        """Write the file of a node, which may have passwords in it."""
        name = f"{folder}/{PROPERTIES_NAME}"
        self.put(name, properties_text(values).encode())
        (self.new / name).chmod(0o600)

    def controller(self, source: Path) -> None:
        """Write the metadata log and the snapshots of a controller."""
        paths = [path for path in source.rglob("*") if path.is_file()]
        # Snapshots come first: the levels at the end of the log are the last.
        for path in sorted(paths, key=lambda file: (file.suffix == LOG_SUFFIX, file)):
            name = f"{source.name}/{path.relative_to(source).as_posix()}"
            content = read_bytes(path)
            if path.suffix in (LOG_SUFFIX, CHECKPOINT_SUFFIX):
                is_snapshot = path.suffix == CHECKPOINT_SUFFIX
                batches = read_batches(path, content, whole=is_snapshot).batches
                content = b"".join(self._metadata(placed.batch).encoded for placed in batches)
            self.put(name, content)

    def _metadata(self, batch: RecordBatch) -> RecordBatch:
        self.contents.see_metadata(batch)
        return metadata_converted(batch, self._shift, self.addresses)

    def broker(self, source: Path, folder: str) -> None:
        """Write the log directories of a broker.

        Errors:  LogError for a damaged archive.
        """
        try:
            with ZipFile(source) as archive:
                for name in archive.namelist():
                    self._broker_file(source, name, folder, archive.read(name))
        except BadZipFile as error:
            raise LogError(f"{source}: damaged: {error}") from None

    def _broker_file(self, source: Path, name: str, folder: str, content: bytes) -> None:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise LogError(f"{source}: {name!r} leads out of the folder")
        match Path(name).suffix:
            case suffix if suffix == LOG_SUFFIX:
                self._segment(source / name, f"{folder}/{name}", content)
                return
            case suffix if suffix == SNAPSHOT_SUFFIX:
                content = self._snapshot(source / name, content)
        self.put(f"{folder}/{name}", content)

    def _segment(self, path: Path, name: str, content: bytes) -> None:
        types = record_types_of(path)
        batches = [
            shifted(placed.batch, self._shift)
            if types is None
            else coordinator_converted(placed.batch, self._shift, types)
            for placed in read_batches(path, content).batches
        ]
        stem = name.removesuffix(LOG_SUFFIX)
        indexes = segment_indexes(int(path.stem), batches, INDEX_INTERVAL_BYTES)
        self.put(name, b"".join(batch.encoded for batch in batches))
        self.put(stem + OFFSET_INDEX_SUFFIX, indexes.offsets)
        self.put(stem + TIME_INDEX_SUFFIX, indexes.times)
        self.contents.folders.add(path.parent)
        self.contents.records += sum(batch.count for batch in batches)

    def _snapshot(self, path: Path, content: bytes) -> bytes:
        try:
            producers = decode_producers(content)
        except InvalidBatch as error:
            raise LogError(f"{path}: {error}") from None
        moved = (producer.at(self._shift.moved(producer.last_timestamp)) for producer in producers)
        return encode_producers(moved)
