"""Controller transcripts: each operation is decided here and compared with what Kafka decided.

Kafka's own records and response are then applied, so that one difference does not lead to others.
Errors, messages, responses and records are compared exactly. Two orders are those of hash maps and
do not count: of partition changes in a row, and of the results of an election for all topics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minicluster.controller.errors import ControllerFault, Rejected
from minicluster.controller.state.broker_heartbeat_manager import replay_registration
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.errors import UserError
from minicluster.metadata.errors import ReplayError
from minicluster.protocol import ProtocolError, format_uuid
from minicluster.protocol.json_form import from_json
from minicluster.protocol.records import (
    RECORD_CLASSES,
    PartitionChangeRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
from tests.controller.applying import apply_record
from tests.transcripts.operations import table
from tests.transcripts.operations.fields import unknown_fields
from tests.transcripts.operations.results import Result
from tests.transcripts.operations.table import OPERATIONS, Operation
from tests.transcripts.replayed_controller import Json, ReplayedController
from tests.transcripts.report import (
    AGREE,
    DIFFER,
    NOT_BUILT,
    Outcome,
    read_lines,
    require,
)

FAULT = "FAULT"
"""The error of an operation over which the controller resigns."""
RULES = {"4.3.0": Rules.KAFKA_4_3, "3.9.2": Rules.KAFKA_3_9}
CLASSES = {
    re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper(): cls
    for cls in RECORD_CLASSES.values()
}


def play(path: Path, rules: Rules | None = None) -> Iterator[Outcome]:
    """Play one transcript; by default with the rules of its release as shipped.

    Errors:  UserError, when the file is no such transcript.
    """
    lines = read_lines(path)
    header = next(lines)
    require(header, _HEADER_FIELDS, f"{path}: no controller transcript: its first line")
    if header["kafka"] not in RULES:
        raise UserError(f"{path}: Kafka {header['kafka']} is not known here")
    number = 1
    try:
        player = Player.of(header, rules or RULES[header["kafka"]].as_shipped())
        for number, line in enumerate(lines, 2):
            if "final_state" in line:
                yield player.compare_final_state(line["final_state"], path.name)
                continue
            require(line, _LINE_FIELDS, f"{path}: line {number} is no operation: it")
            yield player.step(line, path.name)
    except (KeyError, TypeError, ValueError, ReplayError, ProtocolError) as error:
        raise UserError(f"{path}: line {number} cannot be followed: {error}") from error


_HEADER_FIELDS = (
    "kafka",
    "metadata_version_level",
    "eligible_leader_replicas_version",
    "broker_session_timeout_ms",
    "cluster_id",
    "default_replication_factor",
    "default_num_partitions",
    "static_config",
)
_LINE_FIELDS = ("i", "now_ms", "base_offset", "op", "request", "records")


class Player(ReplayedController):
    """Each operation decided and compared, then the state as Kafka's records leave it."""

    def step(self, line: Json, file: str) -> Outcome:
        """Decide one operation, compare, and go on with what Kafka did."""
        where = f"{file} i={line['i']}"
        operation = OPERATIONS.get(line["op"])
        expected = Result(
            line.get("response"),
            line.get("error"),
            tuple(read_record(record) for record in line["records"]),
            line.get("atomic"),
            line.get("error_message"),
        )
        if operation is None:
            self._follow(line, expected)
            return Outcome(line["op"], NOT_BUILT, where)
        try:
            result = self._decide(operation, line)
        except _NotRead as error:
            verdict, detail = NOT_BUILT, f"  {error}"
        else:
            verdict, detail = self._compare(line, expected, result)
        self._follow(line, expected)
        return Outcome(line["op"], verdict, where, detail)

    def _decide(self, operation: Operation, line: Json) -> Result:
        try:
            return operation(self, line)
        except Rejected as rejected:
            return Result(error=rejected.error.name, message=rejected.message)
        except ControllerFault:
            return Result(error=FAULT)
        except Exception as error:  # an exception is a difference
            if isinstance(error, KeyError | TypeError | ValueError) and _in_operations(error):
                raise _NotRead(f"the request is not understood: {error!r}") from error
            return Result(error=f"{type(error).__name__}: {error}")

    def _compare(self, line: Json, expected: Result, result: Result) -> tuple[str, str]:
        found = []
        if result.problem:
            found.append(f"  {result.problem}")
        for name in ("error", "message", "response", "atomic"):
            theirs, ours = getattr(expected, name), getattr(result, name)
            if name in ("response", "atomic") and expected.error is not None:
                continue
            if name == "message" and "error_message" not in line:
                continue
            if _ordered(line, name, theirs) != _ordered(line, name, ours):
                found.append(f"  {name}: {ours!r}, Kafka {theirs!r}")
        if _canonical(expected.records) != _canonical(result.records):
            found.append("  records:")
            found += [f"    ours  {record}" for record in result.records]
            found += [f"    Kafka {record}" for record in expected.records]
        if not found:
            return AGREE, ""
        verdict = DIFFER
        unknown = unknown_fields(line["request"])
        if unknown:
            verdict, found = NOT_BUILT, [f"  unknown fields: {', '.join(unknown)}", *found]
        return verdict, "\n".join([f"  request: {line['request']}", *found])

    def _follow(self, line: Json, kafka: Result) -> None:
        """Take over Kafka's soft state and records."""
        now_ms, request = line["now_ms"], line["request"]
        beats = line["op"] == "broker_heartbeat" and kafka.error is None
        if beats:
            response = kafka.response
            offset = request["current_metadata_offset"]
            self.heartbeats.touch(request["broker_id"], response["is_fenced"], offset, now_ms)
        if line["op"] == "maybe_fence_stale_brokers":
            session = self.stale_session(now_ms)
            if session is not None:
                self.heartbeats.drop_session(session)
                self.sessions.remove(session)
                if self.state.image.cluster.broker(session.broker_id) is None:
                    self.heartbeats.remove(session.broker_id)
        offset = line["base_offset"] - 1
        for record in kafka.records:
            offset += 1
            apply_record(self.state, record, offset)
            replay_registration(self.heartbeats, record.record, self.state.image, now_ms)
        if beats and kafka.response["in_controlled_shutdown"]:
            self.heartbeats.set_shutdown_offset(request["broker_id"], offset)

    def compare_final_state(self, expected: Json, file: str) -> Outcome:
        """Compare every broker and partition at the end."""
        ours = {"brokers": _brokers(self.state), "partitions": _partitions(self.state)}
        theirs = {
            "brokers": sorted(expected["brokers"], key=lambda b: b["broker_id"]),
            "partitions": sorted(
                expected["partitions"], key=lambda p: (p["topic"], p["partition_index"])
            ),
        }
        lines = [
            f"  ours  {a}\n  Kafka {b}"
            for kind in ours
            for a, b in zip(ours[kind], theirs[kind], strict=False)
            if a != b
        ]
        if any(len(ours[kind]) != len(theirs[kind]) for kind in ours):
            lines.append("  the number of brokers or partitions differs")
        return Outcome("final_state", DIFFER if lines else AGREE, file, "\n".join(lines))


_OPERATIONS_FOLDER = Path(table.__file__).parent


class _NotRead(Exception):
    """A request that the player of operations cannot read."""


def _in_operations(error: BaseException) -> bool:
    """An error arose while the request was read, not in the machine."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        trace is not None and Path(trace.tb_frame.f_code.co_filename).parent == _OPERATIONS_FOLDER
    )


def read_record(value: Json) -> VersionedRecord:
    """A record in the transcript's form."""
    cls = CLASSES[value["type"]]
    return VersionedRecord(from_json(cls, value["data"], value["version"]), value["version"])


def _canonical(records: tuple[VersionedRecord, ...]) -> list[str]:
    """The records, with consecutive partition changes in a fixed order."""
    out: list[str] = []
    run: list[str] = []
    for record in records:
        if isinstance(record.record, PartitionChangeRecord):
            run.append(repr(record))
        else:
            out += [*sorted(run), repr(record)]
            run = []
    return out + sorted(run)


def _ordered(line: Json, name: str, value: Any) -> Any:
    """A response, in a fixed order where Kafka has none."""
    if name == "response" and isinstance(value, list):
        request = line["request"]
        all_topics = "topic_partitions" in request and request["topic_partitions"] is None
        if all_topics or (line["op"] == "list_partition_reassignments"):
            value = sorted(value, key=repr)
    return value


def _brokers(state: ClusterState) -> list[Json]:
    return [
        {
            "broker_id": broker.id,
            "broker_epoch": broker.epoch,
            "incarnation_id": format_uuid(broker.incarnation_id),
            "fenced": broker.fenced,
            "in_controlled_shutdown": broker.in_controlled_shutdown,
            "rack": broker.rack,
            "log_dirs": [format_uuid(d) for d in broker.log_dirs],
        }
        for broker in state.image.cluster.brokers.values()
    ]


def _partitions(state: ClusterState) -> list[Json]:
    return [
        {
            "topic": topic.name,
            "topic_id": format_uuid(topic.id),
            "partition_index": index,
            "leader": p.leader,
            "leader_epoch": p.leader_epoch,
            "partition_epoch": p.partition_epoch,
            "leader_recovery_state": p.leader_recovery_state,
            "replicas": list(p.replicas),
            "directories": [format_uuid(d) for d in p.directories],
            "isr": list(p.isr),
            "adding_replicas": list(p.adding_replicas),
            "removing_replicas": list(p.removing_replicas),
            "eligible_leader_replicas": list(p.elr),
            "last_known_elr": list(p.last_known_elr),
        }
        for topic, index, p in state.image.topics.partitions()
    ]
