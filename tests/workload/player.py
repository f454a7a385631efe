"""Two controllers, one log: plays operations and looks at everything after each of them.

One controller is active; the other is a standby that gets every committed batch as bytes. A third
image is folded from those bytes alone. The first finding ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from minicluster.controller import effects as fx
from minicluster.controller.machine import ControllerMachine
from minicluster.controller.settings import ControllerSettings
from minicluster.effects import CancelTimer, Effect, FaultHit, SetTimer
from minicluster.faults import Faults
from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.control import control_batch
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.metadata_version import ELR_VERSION, MetadataVersion
from minicluster.metadata.snapshot import image_from_records, image_records
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import LeaderChangeMessage
from minicluster.rules import FailedReplicas, Rules
from minicluster.verify import LiveJudge
from tests.controller.kit import feature_records
from tests.workload.checks import Change, changed_partitions, response_problems
from tests.workload.operations import Operation, chance
from tests.workload.processes import CLUSTER_ID, Process, all_processes
from tests.workload.requests import (
    ADMINISTRATION,
    administration,
    alter_partition,
    assign_directories,
)

LONG_CHECK_EVERY = 250
BALANCE_MS, ELECT_UNCLEAN_MS, NO_OP_MS = 30_000, 20_000, 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Which Kafka, with what turned on."""

    rules: Rules = Rules.KAFKA_4_3
    faults: Faults = Faults.NONE
    metadata_version: MetadataVersion = MetadataVersion.V4_3_IV0
    elr: bool = False
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise: the rule, the operation after which it was seen, and what it was."""

    rule: str
    operation: Operation
    message: str

    @property
    def text(self) -> str:
        """The finding in one line."""
        return f"{self.rule} after {self.operation.text}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The result of some operations."""

    findings: tuple[Finding, ...]
    operations: int
    records: int
    digest: str
    hits: dict[str, int]


class _Broken(Exception):
    """A promise was broken that makes going on pointless."""


def play(
    case: Case,
    operations: Sequence[Operation],
    *,
    only: str | None = None,
    log_rules: bool = True,
) -> Played:
    """Play operations until the first finding.

    Shapes:  only: the one rule that counts; others are passed over, unless nothing can follow.
             log_rules: the log is judged as well.
    """
    player = Player(case, log_rules=log_rules)
    done = 0
    for operation in operations:
        done += 1
        found = player.step(operation)
        counting = tuple(f for f in found if only in (None, f.rule))
        if counting or (found and player.broken):
            return player.result(counting, done)
    return player.result((), done)


@dataclass(slots=True)
class _Tail:
    """A batch that is appended and not yet committed."""

    batch: RecordBatch
    after: MetadataImage


@dataclass(slots=True)
class _Request:
    request: Any
    on_response: Callable[[Any], None]
    expected: tuple[Change, ...] = field(default=())


class Player:
    """The controllers, their log, their brokers."""

    def __init__(self, case: Case, *, log_rules: bool = True) -> None:
        self.case = case
        self.now_ms = 0
        self.held = False
        self.broken = False
        self.log: list[RecordBatch] = []
        self.tail: list[_Tail] = []
        self.end = 0
        self.epoch = 0
        self.committed = MetadataImage.EMPTY
        self.timers: dict[str, int] = {}
        self.processes = all_processes()
        self.hits: dict[str, int] = {}
        self._live = LiveJudge("workload") if log_rules else None
        self._requested: dict[int, _Request] = {}
        self._tokens = 0
        self._found: list[Finding] = []
        self._operation = Operation(number=-1, kind="begin")
        self._draw, self._topics_made = chance(case.seed, -1), 0
        self._steps, self._records = 0, 0
        self.active, self.standby = self._machine(), self._machine()
        self._claim()

    def _machine(self) -> ControllerMachine:
        levels = {ELR_VERSION: 1} if self.case.elr else {}
        return ControllerMachine(
            settings=ControllerSettings(
                cluster_id=CLUSTER_ID,
                leader_imbalance_check_interval_ms=BALANCE_MS,
                unclean_election_check_interval_ms=ELECT_UNCLEAN_MS,
                max_idle_interval_ms=NO_OP_MS,
            ),
            bootstrap=feature_records(self.case.metadata_version, levels),
            draw=lambda bound: self._draw.randrange(bound),
            new_topic_id=self._new_topic_id,
            rules=self.case.rules,
            faults=self.case.faults,
        )

    def _new_topic_id(self) -> UUID:
        self._topics_made += 1
        return UUID(int=(3 << 64) + (self._operation.number + 1 << 16) + self._topics_made)

    def result(self, findings: tuple[Finding, ...], operations: int) -> Played:
        return Played(
            findings=findings,
            operations=operations,
            records=self._records,
            digest=self.image.digest(),
            hits=dict(self.hits),
        )

    @property
    def image(self) -> MetadataImage:
        """The fold of the whole log, its uncommitted tail included."""
        return self.tail[-1].after if self.tail else self.committed

    # One step.

    def step(self, operation: Operation) -> list[Finding]:
        """Let time pass, do one thing, look."""
        self._operation, self._found, self._topics_made = operation, [], 0
        self._draw = chance(self.case.seed, operation.number, "placement")
        self._steps += 1
        before, active = self.image, self.active
        try:
            self._let_time_pass(max(self.now_ms, operation.at_ms))
            self._do(operation)
            if self.image is not before or self.active is not active:
                self._look()
            if self._steps % LONG_CHECK_EVERY == 0:
                self._look_long()
        except _Broken:
            self.broken = True
        return self._found

    def _find(self, rule: str, message: str) -> None:
        self._found.append(Finding(rule, self._operation, message))

    def _call(self, act: Callable[..., list[Effect]], *arguments: Any) -> None:
        """Give a machine an input and carry out its effects; whatever it raises is a finding."""
        try:
            effects = act(*arguments)
        except Exception as error:
            self._find("E42", f"{type(error).__name__}: {error}")
            raise _Broken from error
        self._take(effects)

    def _take(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case fx.Append(epoch, base_offset, records):
                    if (epoch, base_offset) != (self.epoch, self.end):
                        self._find("E01", f"append at {base_offset}, the log ends at {self.end}")
                        raise _Broken
                    self._append(metadata_batch(base_offset, epoch, self.now_ms, records))
                case fx.ReportRefusal():
                    pass
                case fx.ControllerRespond():
                    self._respond(effect)
                case SetTimer(name, at_ms):
                    self.timers[name] = at_ms
                case fx.TaskFailed(task, reason):
                    self._find("E42", f"the task {task} failed: {reason}")
                    raise _Broken
                case CancelTimer(name):
                    self.timers.pop(name, None)
                case FaultHit(fault):
                    self.hits[fault] = self.hits.get(fault, 0) + 1
                case fx.Resign(_, reason):
                    self._find("E42", f"the controller resigned: {reason}")
                    raise _Broken
                case _:
                    raise AssertionError(effect)
        if not self.held:
            self._commit()

    # The log.

    def _append(self, batch: RecordBatch) -> None:
        """Take a batch in as bytes; what is folded and passed on has been read back from them."""
        read = RecordBatch.decode(batch.encoded)
        image = self.image
        if not read.is_control:
            for offset, record in enumerate(read.metadata_records, read.base_offset):
                image = apply(image, record, offset=offset)
        self.tail.append(_Tail(read, image))
        self.end = read.last_offset + 1
        self._records += read.count

    def _commit(self) -> None:
        """Commit all that is appended: the log is judged, both controllers are notified."""
        tail, self.tail = self.tail, []
        for entry in tail:
            self.log.append(entry.batch)
            self.committed = entry.after
            self._judge(entry.batch)
            self._call(self.standby.on_batch, entry.batch, self.now_ms)
        if tail and self.active.is_active:
            self._call(self.active.on_committed, self.end, self.now_ms)

    def _judge(self, batch: RecordBatch) -> None:
        """Apply the log rules to a committed batch.

        KIP-589 keeps failed replicas out of the log, which C5 needs to derive the candidates.
        """
        if self._live is None:
            return
        reported = self.case.rules.failed_replicas_reported_by
        for finding in self._live.commit(batch):
            if finding.rule != "C5" or reported is FailedReplicas.HEARTBEAT:
                self._find(finding.rule, finding.message)

    def _claim(self) -> None:
        """The active controller begins a new epoch."""
        self.epoch += 1
        change = LeaderChangeMessage(version=0, leader_id=self.epoch % 2, voters=())
        self._append(control_batch(self.end, self.epoch, self.now_ms, [change]))
        tail, self.tail = self.tail, []
        for entry in tail:
            self.log.append(entry.batch)
            self._judge(entry.batch)
            for machine in (self.active, self.standby):
                self._call(machine.on_batch, entry.batch, self.now_ms)
        self._call(self.active.on_claim, self.epoch, self.end, self.now_ms)

    def _let_time_pass(self, until_ms: int) -> None:
        while self.timers:
            name = min(self.timers, key=lambda timer: (self.timers[timer], timer))
            if self.timers[name] > until_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(name))
            self._call(self.active.on_timer, name, self.now_ms)
        self.now_ms = until_ms

    # Requests and responses.

    def request(
        self,
        request: Any,
        version: int | None = None,
        on_response: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """Hand a request to the active controller."""
        self._tokens += 1
        token = self._tokens
        requested = self._requested[token] = _Request(request, on_response)
        if version is None:
            version = type(request).latest_version

        def handle() -> list[Effect]:
            effects = self.active.on_request(token, request, version, self.now_ms)
            requested.expected = changed_partitions(request, self.active.image)
            return effects

        self._call(handle)

    def _respond(self, response: fx.ControllerRespond) -> None:
        requested = self._requested.pop(response.token, None)
        if requested is None:
            self._find("E40", f"request {response.token} has two responses")
            raise _Broken
        written = len(response.records_written)
        for rule, problem in response_problems(
            requested.request, response.response, requested.expected, written
        ):
            self._find(rule, problem)
        requested.on_response(response.response)

    # Looking.

    def _look(self) -> None:
        """Check all that must hold after every step."""
        for problem in self.active.state.check_indexes():
            self._find("E41", problem)
        folded = self.image
        if self.active.image.digest() != folded.digest():
            self._find("E32", "the active controller's image is not the fold of the log")
        for name, machine in (("active", self.active), ("standby", self.standby)):
            if machine.committed_image.digest() != self.committed.digest():
                self._find("E32", f"the {name} controller's committed image is not the log's fold")
        if not self.held and self._requested:
            self._find(
                "E40", f"{len(self._requested)} requests wait though everything is committed"
            )

    def _look_long(self) -> None:
        """Checks whose cost grows with the cluster: replay, snapshot, the standby's indexes."""
        for problem in self.standby.state.check_indexes():
            self._find("E41", f"standby: {problem}")
        image = MetadataImage.EMPTY
        for batch in self.log:
            if not batch.is_control:
                for offset, record in enumerate(batch.metadata_records, batch.base_offset):
                    image = apply(image, record, offset=offset)
        if image != self.committed or image.digest() != self.committed.digest():
            self._find("E32", "the replay of all records is another image")
        saved = image_from_records(image_records(image, self.case.rules))
        if saved != image or saved.digest() != image.digest():
            self._find("E34", "a snapshot of the image holds another image")

    # What operations do.

    def _do(self, operation: Operation) -> None:
        kind, arguments = operation.kind, operation.arguments
        process = self.processes.get(arguments.get("broker", -1))
        if kind in ADMINISTRATION:
            self.request(administration(kind, arguments, self.active.image))
        elif process is not None:
            self._do_broker(kind, process, arguments)
        elif kind == "alter_partition":
            requested = alter_partition(arguments, self.active.image, self.case.rules)
            if requested is not None:
                self.request(*requested)
        elif kind == "beat":
            for each in self.processes.values():
                self._beat(each)
        elif kind == "hold_commits":
            self.held = True
        elif kind == "commit":
            self.held = False
            self._commit()
        elif kind == "fail_over":
            self._fail_over(loses_tail=arguments["loses_tail"])
        elif kind == "reload_standby":
            self._reload_standby()
        else:
            assert kind == "wait", kind

    def _do_broker(self, kind: str, process: Process, arguments: Any) -> None:
        match kind:
            case "start":
                process.start(clean=arguments["clean"], new_dirs=arguments.get("new_dirs", False))
                self._register(process)
            case "amend":
                if process.is_connected:
                    self._register(process)
            case "heartbeat":
                self._beat(
                    process,
                    behind=arguments["behind"],
                    want_fence=arguments["want_fence"],
                    stale=arguments["stale"],
                )
            case "stop":
                process.stopping = process.running
                self._beat(process)
            case "kill":
                process.stop(clean=False)
            case "mute" | "unmute":
                process.muted = kind == "mute"
            case "fail_directory":
                directory = process.directories[arguments["directory"]] if process.running else None
                if directory is not None and directory not in process.failed:
                    process.failed.append(directory)
                    self._beat(process)
            case "cordon":
                chosen = arguments["directories"]
                process.cordoned = tuple(
                    d for n, d in enumerate(process.directories) if n in chosen
                )
                self._beat(process)
            case "assign_directories" if process.is_connected:
                request = assign_directories(arguments, self.active.image, process)
                if request is not None:
                    self.request(request)

    def _register(self, process: Process) -> None:
        incarnation = process.incarnation

        def responded(response: m.BrokerRegistrationResponse) -> None:
            if process.incarnation == incarnation and response.error_code == ErrorCode.NONE:
                process.epoch = response.broker_epoch

        self.request(process.registration(self.case.rules), on_response=responded)

    def _beat(
        self, process: Process, *, behind: int = 0, want_fence: bool = False, stale: bool = False
    ) -> None:
        if not process.is_connected:
            return
        if process.epoch is None:
            self._register(process)
            return
        incarnation = process.incarnation

        def responded(response: m.BrokerHeartbeatResponse) -> None:
            if process.incarnation != incarnation:
                return
            if response.error_code == ErrorCode.NONE and response.should_shut_down:
                process.stop(clean=True)
            if response.error_code == ErrorCode.STALE_BROKER_EPOCH and not stale:
                process.epoch = None  # it was unregistered
                process.stop(clean=False)

        offset = max(-1, self.end - 1 - behind)
        rules = self.case.rules
        self.request(
            process.heartbeat(offset, rules, want_fence=want_fence, stale=stale),
            on_response=responded,
        )
        if rules.failed_replicas_reported_by is FailedReplicas.ALTER_REPLICA_STATE:
            report = process.report(self.active.image) if process.running else None
            if report is not None:
                self.request(report)

    def _fail_over(self, *, loses_tail: bool) -> None:
        """The other controller leads; what was not committed is lost, or turns out to be kept."""
        old, tail = self.active, self.tail
        self._call(old.on_renounce, self.now_ms)
        if old.image.digest() != self.committed.digest():
            self._find("E32", "who renounced did not go back to what is committed")
        if old.state.check_indexes():
            self._find("E41", "who renounced has other indexes than its image")
        self.timers.clear()
        self.held, self.tail = False, []
        if loses_tail and tail:
            self.end = tail[0].batch.base_offset
        else:
            for entry in tail:
                self.log.append(entry.batch)
                self.committed = entry.after
                self._judge(entry.batch)
                for machine in (old, self.standby):
                    self._call(machine.on_batch, entry.batch, self.now_ms)
        self.active, self.standby = self.standby, old
        self._claim()

    def _reload_standby(self) -> None:
        """The standby starts over from a snapshot of what is committed."""
        image = self.committed
        saved = image_from_records(image_records(image, self.case.rules))
        if saved.digest() != image.digest():
            self._find("E34", "a snapshot of the image holds another image")
        end = self.tail[0].batch.base_offset if self.tail else self.end
        self._call(self.standby.on_snapshot, saved, end, self.now_ms)
