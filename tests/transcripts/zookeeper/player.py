"""Plays a run: every write of every controller must be the next one of the machine.

The tree of znodes is always the recorded one. A transaction of a controller is matched with the
writes of its machine; if the machine is idle, with the writes of the events that wait. Writes of
other sessions are applied, and fire watches.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, permutations
from typing import Any
from uuid import UUID

from minicluster.controller.settings import UNCLEAN_ELECTION
from minicluster.effects import Effect, Respond
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import ElectLeadersResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import replace
from minicluster.zookeeper.controller.controller_state import AUTO_REBALANCE
from minicluster.zookeeper.controller.machine import ZooKeeperControllerMachine
from minicluster.zookeeper.server.operations import GetChildren, Multi, Request
from minicluster.zookeeper.server.watches import WatchEvent, WatchKind
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import TopicAssignment, decode_config, decode_config_change
from tests.transcripts.report import AGREE, DIFFER, NOT_BUILT, Outcome
from tests.transcripts.zookeeper.controllers import (
    Controller,
    Inject,
    SeenChildren,
    Waiting,
    machine_of,
)
from tests.transcripts.zookeeper.elections import elected_in_time, elections_of_all
from tests.transcripts.zookeeper.forms import comparable, read_message
from tests.transcripts.zookeeper.recording import CONTROL_APIS, Recorded, Recording, Transaction
from tests.transcripts.zookeeper.resync import resynchronise
from tests.transcripts.zookeeper.sent_requests import LoggedRequests
from tests.transcripts.zookeeper.znodes import Znodes

DECIDED = (
    "ALTER_ISR", "ALTER_PARTITION", "CONTROLLED_SHUTDOWN", "ELECT_LEADERS",
    "ALTER_PARTITION_REASSIGNMENTS", "ALLOCATE_PRODUCER_IDS",
)  # fmt: skip
"""The APIs that the controller decides."""

SLACK_MS = 30
"""By so much may the log of a request lag behind ZooKeeper's, on the same machine."""

RESPONSE_SLACK_MS = 2
"""A broker logs its response just after it has sent it."""

LATE_RESPONSE_MS = 150
"""So long after the controller has a response may a busy broker log it."""

WATCH_DEADLINE_MS = 400
"""A watch event without a trace was processed by then."""


class Player:
    """One run, from its first transaction to its last."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.znodes = Znodes()
        self.controllers: list[Controller] = []
        self.all_controllers: list[Controller] = []
        self.outcomes: list[Outcome] = []
        self.logged = LoggedRequests(recording)
        self._place = 0
        self._elections = elections_of_all(recording)
        self._requests = [one for one in recording.requests if one.api in DECIDED]
        self._control = sorted(
            (one for one in recording.requests if one.api in CONTROL_APIS and not one.is_probe),
            key=lambda one: one.ms,
        )

    def play(self) -> Iterator[Outcome]:
        """Play all transactions in order of their zxids."""
        for self._place, transaction in enumerate(self.recording.transactions):  # noqa: B020
            self._arrive(transaction.ms + SLACK_MS)
            self._catch_up(transaction.ms)
            self._play(transaction)
        end_ms = self.recording.transactions[-1].ms + 60_000
        self._arrive(end_ms)
        self._catch_up(end_ms)
        yield from self.outcomes

    def _arrive(self, until_ms: int) -> None:
        """Requests and responses that have come by now wait with the controller they went to."""
        came: list[tuple[int, Recorded]] = []
        while self._requests and self._requests[0].received_ms <= until_ms:
            recorded = self._requests.pop(0)
            came.append((recorded.received_ms, recorded))
        while self._control and self._control[0].ms <= until_ms - SLACK_MS + RESPONSE_SLACK_MS:
            recorded = self._control.pop(0)
            came.append((recorded.ms, recorded))
        for _, recorded in sorted(came, key=lambda one: one[0]):
            if recorded.api in CONTROL_APIS:
                self._responded(recorded, recorded.ms)
            else:
                self._requested(recorded)

    def _inject(self, recorded: Recorded) -> Inject:
        request = read_message(recorded.api, "Request", recorded.version, recorded.request)
        if recorded.number in self._elections:
            request = replace(request, topic_partitions=self._elections[recorded.number])
        return lambda machine: machine.on_request(
            recorded.number, request, recorded.version, recorded.received_ms
        )

    def _requested(self, recorded: Recorded) -> None:
        controller = self._of_broker(recorded.broker)
        if controller is None or self._has_started_since(controller, recorded.received_ms):
            self._without_controller(recorded)
        else:
            self._wait(controller, recorded.api, self._inject(recorded),
                       recorded.received_ms, recorded.ms, recorded)  # fmt: skip

    def _responded(self, recorded: Recorded, now_ms: int) -> None:
        controller = self._of_epoch(recorded.controller_epoch)
        if controller is not None and _matters(controller, recorded):
            self._wait(controller, f"response {recorded.api} {recorded.number}",
                       _control_response(recorded), now_ms,
                       recorded.ms + WATCH_DEADLINE_MS)  # fmt: skip

    def _has_started_since(self, controller: Controller, ms: int) -> bool:
        """The broker runs again after its end; it is no controller until its next election."""
        starts = self.recording.starts.get(controller.broker, ())
        return any(controller.elected_ms < start_ms <= ms for start_ms in starts)

    def _without_controller(self, recorded: Recorded) -> None:
        """A broker that is not the controller refuses."""
        if recorded.response is None:
            return
        machine = machine_of(self.recording, recorded.broker)
        effects = self._inject(recorded)(machine)
        given = next(one.response for one in effects if isinstance(one, Respond))
        kind = "probe" if recorded.is_probe else "response"
        where = f"{self.recording.path.name} request {recorded.number}"
        self.outcomes.append(compared(kind, recorded, given, where))

    def _wait(
        self,
        controller: Controller,
        name: str,
        inject: Inject,
        arrived_ms: int,
        deadline_ms: int,
        recorded: Recorded | None = None,
        seen: SeenChildren | None = None,
    ) -> None:
        for start_ms, end_ms in self.recording.pauses.get(controller.broker, ()):
            if start_ms <= deadline_ms < end_ms + WATCH_DEADLINE_MS:
                deadline_ms = max(deadline_ms, end_ms + WATCH_DEADLINE_MS)
        event = Waiting(name, inject, arrived_ms, deadline_ms, recorded, seen)
        place = len(controller.waiting)
        while place and controller.waiting[place - 1].arrived_ms > arrived_ms:
            place -= 1  # a request may have come in before what ZooKeeper's log shows now
        controller.waiting.insert(place, event)

    def _catch_up(self, now_ms: int) -> None:
        """Process events without writes: at the latest by their deadline, and before that if the
        requests that they send are the next ones that the brokers have logged.
        """
        for controller in self.controllers:
            if controller.expired and not controller.ended:
                continue  # paused past the end of its session: it goes on when it reconnects
            while not controller.requested and self._process_next(controller, now_ms):
                continue

    def _process_next(self, controller: Controller, now_ms: int) -> bool:
        """Process one event without writes; the order of arrival is a guess as well."""
        paused = self.recording.is_paused(controller.broker, now_ms)
        for place, event in enumerate(list(controller.waiting)):
            if not controller.comes_first(place):
                continue
            due = place == 0 and event.deadline_ms <= now_ms - SLACK_MS
            if (due or not paused) and self._without_writes(controller, place, now_ms, due=due):
                return True
        return False

    def _without_writes(
        self, controller: Controller, place: int, now_ms: int, *, due: bool
    ) -> bool:
        snapshot = controller.snapshot()
        event = controller.waiting.pop(place)
        before = len(controller.sent)
        controller.pump(event.inject(controller.machine), now_ms)
        early = not due and _is_too_early(controller, event)
        if (
            not controller.requested
            and not early
            and (due or self.logged.has_next(controller, before))
        ):
            return True
        controller.restore(snapshot)
        return False

    # --- transactions ---------------------------------------------------------------------------

    def _play(self, transaction: Transaction) -> None:
        if _is_election(transaction):
            self._elect(transaction)
            return
        controller = self._of_session(transaction.session)
        if _is_lost_election(transaction) and self.znodes.tree.data_of(paths.CONTROLLER):
            self._outcome("write lost election", AGREE, f"zxid {transaction.zxid}", "")
            return
        if controller is not None and self._is_decision(controller, transaction):
            self._decide(controller, transaction)
            return
        if transaction.kind == "close_session" and controller is not None:
            self._end(controller, transaction.ms)
            controller.expired = True
        if transaction.kind == "create_session":
            self._expire(transaction)
        self._fire(self.znodes.apply(transaction), transaction.ms)
        for one in self.controllers:
            self._go_on(one, transaction.ms)
        self._notice_configs(transaction)

    @staticmethod
    def _is_decision(controller: Controller, transaction: Transaction) -> bool:
        """A write of the controller; below IBP 3.0 brokers take their producer ids themselves."""
        if transaction.entries[0].path == paths.PRODUCER_ID_BLOCK and transaction.kind == "write":
            return controller.machine.state.settings.protocol >= InterBrokerProtocol(3, 0, 0)
        return _is_of_controller(transaction)

    def _elect(self, transaction: Transaction) -> None:
        """A new controller, whose registration is the first of its writes."""
        broker = transaction.broker
        assert broker is not None
        self.controllers = [
            c for c in self.controllers if c.broker != broker or c.session == transaction.session
        ]
        self.controllers = [c for c in self.controllers if c.broker != broker]
        controller = Controller(
            self.recording, self.znodes, broker, transaction.session, self._next_id(broker)
        )
        self.controllers.append(controller)
        self.all_controllers.append(controller)
        controller.machine.state.unclean_by_default = self._unclean_default(broker)
        election_ms = int(_timestamp(transaction))
        controller.elected_ms = transaction.ms
        controller.pump(controller.machine.on_start(election_ms), election_ms)
        while controller.requested and not controller.would_take(transaction):
            # The znode of the epoch is created by one of the first candidates, in its own time.
            break
        self._match(controller, transaction)

    def _decide(self, controller: Controller, transaction: Transaction) -> None:
        """A write of a controller: the next one of its machine, or the first one of an event."""
        controller.go_on(transaction.ms)
        if not controller.requested and not self._find_event(controller, transaction):
            self._take_late_responses(transaction.ms)
            self._find_event(controller, transaction)
        self._match(controller, transaction)

    def _find_event(self, controller: Controller, transaction: Transaction) -> bool:
        """Process the waiting event that makes the machine send this write."""
        snapshot = controller.snapshot()
        ready = [
            place
            for place, event in enumerate(controller.waiting)
            if event.arrived_ms <= transaction.ms + SLACK_MS
        ]
        if self._find_early_read(controller, transaction, ready):
            return True
        for first in ready:
            if self._try(controller, first, transaction, in_order=True):
                return True
            controller.restore(snapshot)
        for first in ready:
            if self._try(controller, first, transaction, in_order=False):
                return True
            controller.restore(snapshot)
        for event, second in permutations([controller.waiting[place] for place in ready], 2):
            controller.waiting.remove(event)
            controller.pump(event.inject(controller.machine), transaction.ms)
            while not controller.requested and self._process_next(controller, transaction.ms):
                continue
            if not controller.requested and second in controller.waiting:
                place = controller.waiting.index(second)
                if self._try(controller, place, transaction, in_order=False):
                    return True
            controller.restore(snapshot)
        if controller.machine.state.settings.auto_leader_rebalance_enable:
            controller.pump(
                controller.machine.on_timer(AUTO_REBALANCE, transaction.ms), transaction.ms
            )
            if controller.would_take(transaction):
                return True
            controller.restore(snapshot)
        return False

    def _take_late_responses(self, now_ms: int) -> None:
        """A broker that is busy logs a response some time after the controller has it."""
        while self._control and self._control[0].ms <= now_ms + LATE_RESPONSE_MS:
            self._responded(self._control.pop(0), now_ms)

    def _find_early_read(
        self, controller: Controller, transaction: Transaction, ready: list[int]
    ) -> bool:
        """Process the watch of children that were read before others came beside them.

        The brokers have logged what was sent for those alone, or the writes for those alone are the
        next ones. The read has set the watch again, which the others have fired.
        """
        snapshot = controller.snapshot()
        for place in ready:
            event = controller.waiting[place]
            now = None if event.seen is None else self._children(event.seen.path)
            early = [] if event.seen is None else [s for s in event.seen.states if s != now]
            if event.seen is None or not early:
                continue
            late = self._try(controller, place, transaction, in_order=True)
            late = late and self._writes_follow(controller)
            controller.restore(snapshot)
            for children in dict.fromkeys(early):
                controller.seen = {event.seen.path: children}
                before = len(controller.sent)
                taken = self._try(controller, place, transaction, in_order=True)
                controller.seen = {}
                if taken and (
                    self.logged.has_next(controller, before)
                    or (not late and self._writes_follow(controller))
                ):
                    controller.waiting.append(replace(event, seen=None))
                    return True
                controller.restore(snapshot)
        return False

    def _writes_follow(self, controller: Controller) -> bool:
        """The controller's next writes are those that wait, in any order."""
        wanted = Counter(_path_of(request) for request in controller.requested)
        following = (
            transaction.entries[-1].path
            for transaction in self.recording.transactions[self._place :]
            if transaction.session == controller.session
            and self._is_decision(controller, transaction)
        )
        return Counter(islice(following, wanted.total())) == wanted

    def _children(self, path: str) -> tuple[str, ...]:
        return self.znodes.tree.read(GetChildren(path)).children

    def _try(
        self, controller: Controller, place: int, transaction: Transaction, *, in_order: bool
    ) -> bool:
        """Process one event, with all before it or before the others, and look at its writes."""
        if in_order:
            later = 0
            for _ in range(place):
                before = controller.snapshot()
                event = controller.waiting.pop(later)
                controller.pump(event.inject(controller.machine), transaction.ms)
                if controller.requested:
                    return False
                if _is_too_early(controller, event):
                    controller.restore(before)
                    later += 1
            place = later
        event = controller.waiting.pop(place)
        controller.pump(event.inject(controller.machine), transaction.ms)
        return controller.would_take(transaction)

    def _match(self, controller: Controller, transaction: Transaction) -> None:
        kind = _kind(transaction)
        where = f"zxid {transaction.zxid}"
        requested = list(controller.requested)
        if controller.take(transaction):
            self._outcome(f"write {kind}", AGREE, where, "")
            self._fire(self.znodes.fire(transaction), transaction.ms)
            self._go_on(controller, transaction.ms)
            return
        shown = "\n".join(f"  requested {request}" for request in requested)
        waits = ", ".join(event.name for event in controller.waiting)
        entries = "\n".join(f"  {entry}" for entry in transaction.entries)
        self._outcome(f"write {kind}", DIFFER, where, f"{entries}\n{shown}\n  waiting: {waits}")
        self._fire(self.znodes.apply(transaction), transaction.ms)
        resynchronise(controller, self.recording, transaction.ms)

    def _end(self, controller: Controller, now_ms: int) -> None:
        """A broker that was killed: of its last event, only what it sent is there."""
        if self.recording.is_paused(controller.broker, now_ms) or any(
            event.recorded is not None and event.recorded.ms > now_ms
            for event in controller.waiting
        ):
            return  # it will respond, without its session
        while controller.waiting and not controller.requested:
            snapshot = controller.snapshot()
            event = controller.waiting.pop(0)
            before = len(controller.sent)
            controller.pump(event.inject(controller.machine), now_ms)
            if not self.logged.has_next(controller, before):
                waiting = controller.waiting
                controller.restore(snapshot)
                controller.waiting = waiting

    def _go_on(self, controller: Controller, now_ms: int) -> None:
        """Go on with an event; a fail-over waits until the brokers of its requests register."""
        names = self.znodes.tree.read(GetChildren(paths.BROKER_IDS)).children
        if controller.sent or self.logged.first_live(controller) <= {int(name) for name in names}:
            controller.go_on(now_ms)

    def _expire(self, transaction: Transaction) -> None:
        """A broker's next session: the controller in its old one learns that it has expired."""
        controller = self._of_broker(transaction.broker)
        if controller is not None and controller.expired and not controller.requested:
            now_ms = transaction.ms
            waiting = [event for event in controller.waiting if event.recorded is not None]
            controller.waiting = []
            for place, event in enumerate(waiting):
                snapshot = controller.snapshot()
                controller.pump(event.inject(controller.machine), now_ms)
                if not self._responds_as_recorded(controller, event):
                    controller.restore(snapshot)
                    waiting = waiting[place:]
                    break
            else:
                waiting = []
            controller.pump(controller.machine.on_session_expired(now_ms), now_ms)
            controller.waiting = waiting
            controller.ended = True

    @staticmethod
    def _responds_as_recorded(controller: Controller, event: Waiting) -> bool:
        """The request came before the machine noticed its expiry; else it came after it."""
        recorded = event.recorded
        if recorded is None or recorded.response is None:
            return False
        given = controller.responses.get(recorded.number)
        wanted = read_message(recorded.api, "Response", recorded.version, recorded.response)
        return given is not None and comparable(given, recorded.version) == comparable(
            wanted, recorded.version
        )

    def _fire(self, events: list[tuple[int, WatchEvent]], now_ms: int) -> None:
        for session, watched in events:
            controller = self._of_session(session)
            if controller is not None and not controller.expired:
                seen = None
                if watched.kind is WatchKind.NODE_CHILDREN_CHANGED:
                    seen = SeenChildren(watched.path)
                self._wait(controller, f"watch {watched.kind.value} {watched.path}",
                           _watch(watched), now_ms, now_ms + WATCH_DEADLINE_MS,
                           seen=seen)  # fmt: skip
        for controller in self.controllers:
            for event in controller.waiting:
                if event.seen is not None:
                    event.seen.states.append(self._children(event.seen.path))

    def _notice_configs(self, transaction: Transaction) -> None:
        """Brokers read a config change; the controller's own enables unclean elections."""
        for entry in transaction.entries:
            if entry.op != "create" or not entry.path.startswith(paths.CONFIG_CHANGE_PREFIX):
                continue
            kind, _, topic = decode_config_change(entry.data).partition("/")
            if kind == "brokers":
                self._notice_broker_configs(topic, transaction.ms)
                continue
            data = self.znodes.tree.data_of(paths.topic_config(topic)) if kind == "topics" else None
            if decode_config(data).get(UNCLEAN_ELECTION) == "true":
                for controller in self.controllers:
                    if not controller.expired:
                        self._wait(controller, f"unclean {topic}", _unclean(topic),
                                   transaction.ms, transaction.ms + WATCH_DEADLINE_MS)  # fmt: skip

    def _notice_broker_configs(self, name: str, ms: int) -> None:
        """The controller's broker takes its own configs, and those of all brokers."""
        for controller in self.controllers:
            if controller.expired or name not in (paths.DEFAULT_ENTITY, str(controller.broker)):
                continue
            allowed = self._unclean_default(controller.broker)
            self._wait(controller, f"configs of {name}", _unclean_default(allowed),
                       ms, ms + WATCH_DEADLINE_MS)  # fmt: skip

    def _unclean_default(self, broker: int) -> bool:
        """Whether a broker allows unclean leaders where a topic says nothing."""
        settings = self.recording.summary["settings"]
        value = settings.get(UNCLEAN_ELECTION, "false")
        for name in ("", str(broker)):
            data = self.znodes.tree.data_of(paths.broker_config(name))
            value = decode_config(data).get(UNCLEAN_ELECTION, value)
        return str(value).strip().lower() == "true"

    # --- who is meant ---------------------------------------------------------------------------

    def _of_session(self, session: int) -> Controller | None:
        return next((c for c in reversed(self.controllers) if c.session == session), None)

    def _of_broker(self, broker: int | None) -> Controller | None:
        return next((c for c in reversed(self.controllers) if c.broker == broker), None)

    def _of_epoch(self, epoch: int | None) -> Controller | None:
        return next((c for c in self.controllers if c.epoch == epoch), None)

    def _next_id(self, broker: int) -> Callable[[], UUID]:
        """The ids that a controller gives to topics without one are those that it wrote next."""
        return lambda: next(self._given_ids(broker), ZERO_UUID)

    def _given_ids(self, broker: int) -> Iterator[UUID]:
        for transaction in self.recording.transactions[self._place :]:
            entry = transaction.entries[-1]
            if (transaction.broker, entry.op) != (broker, "set") or not transaction.is_multi:
                continue
            before = self.znodes.tree.data_of(entry.path)
            if entry.path.rpartition("/")[0] == paths.TOPICS and before is not None:
                topic_id = TopicAssignment.decode(entry.data).topic_id
                if topic_id is not None and TopicAssignment.decode(before).topic_id is None:
                    yield topic_id

    def _outcome(self, operation: str, verdict: str, where: str, detail: str) -> None:
        self.outcomes.append(
            Outcome(operation, verdict, f"{self.recording.path.name} {where}", detail)
        )


def _path_of(request: Request) -> str:
    """The path of a write, or of the last one of several."""
    last = request.operations[-1] if isinstance(request, Multi) else request
    return last.path


def _is_too_early(controller: Controller, event: Waiting) -> bool:
    """The response to an AlterPartition is not the recorded one: something came before it."""
    recorded = event.recorded
    if recorded is None or recorded.api not in ("ALTER_ISR", "ALTER_PARTITION"):
        return False
    given = controller.responses.get(recorded.number)
    if given is None or recorded.response is None:
        return False
    return compared("", recorded, given, "").verdict == DIFFER


def _matters(controller: Controller, recorded: Recorded) -> bool:
    """The controller does something with the response, or could."""
    if recorded.response is None:
        return False
    if recorded.api == "LEADER_AND_ISR":
        lost = controller.machine.state.context.offline_dirs.get(recorded.broker)
        return bool(lost) or '"errorCode": 56' in json.dumps(recorded.response)
    return recorded.api == "STOP_REPLICA" and '"deletePartition": true' in json.dumps(
        recorded.request
    )


def _control_response(recorded: Recorded) -> Inject:
    def inject(machine: ZooKeeperControllerMachine) -> list[Effect]:
        request = read_message(recorded.api, "Request", recorded.version, recorded.request)
        assert recorded.response is not None
        response = read_message(recorded.api, "Response", recorded.version, recorded.response)
        return machine.on_control_response(recorded.broker, request, response, recorded.ms)

    return inject


def _watch(watched: WatchEvent) -> Inject:
    return lambda machine: machine.on_watch(watched, machine.state.now_ms)


def _unclean_default(allowed: bool) -> Inject:
    return lambda machine: machine.on_unclean_default(allowed, machine.state.now_ms)


def _unclean(topic: str) -> Inject:
    return lambda machine: machine.on_unclean_enabled(topic, machine.state.now_ms)


def _is_election(transaction: Transaction) -> bool:
    return any(e.op == "create" and e.path == paths.CONTROLLER for e in transaction.entries)


def _is_lost_election(transaction: Transaction) -> bool:
    """A candidate's multi that found another one's znode."""
    return [e.error for e in transaction.entries] == ["NODEEXISTS", "RUNTIMEINCONSISTENCY"]


def _timestamp(transaction: Transaction) -> str:
    data = next(e.data for e in transaction.entries if e.path == paths.CONTROLLER)
    return str(json.loads(data or b"{}")["timestamp"])


def _is_of_controller(transaction: Transaction) -> bool:
    """A multi with a check of the controller epoch, or what only a controller writes."""
    if transaction.kind != "write":
        return False
    first = transaction.entries[0]
    if transaction.is_multi:
        if first.op == "check":
            return first.path == paths.CONTROLLER_EPOCH
        return first.op == "error"
    return first.path == paths.FEATURE


def _kind(transaction: Transaction) -> str:
    """The kind of write of a controller's transaction."""
    last = next((e for e in transaction.entries if e.op not in ("check", "error")), None)
    if last is None:
        return "that failed"
    if paths.state_of(last.path) is not None:
        return f"{last.op} partition state"
    parent = last.path.rpartition("/")[0]
    if parent == paths.TOPICS:
        return f"{last.op} topic"
    for name, path in (
        ("topic config", paths.TOPIC_CONFIGS),
        ("topic deletion", paths.DELETE_TOPICS),
        ("notification", paths.ISR_CHANGE_NOTIFICATION),
        ("notification", paths.LOG_DIR_EVENT_NOTIFICATION),
    ):
        if parent == path:
            return f"{last.op} {name}"
    if last.path.startswith(paths.TOPICS):
        return f"{last.op} partition"
    return f"{last.op} {last.path}"


def compare_responses(player: Player) -> Iterator[Outcome]:
    """The response to each request that a controller decided."""
    name = player.recording.path.name
    given = {n: r for controller in player.all_controllers for n, r in controller.responses.items()}
    for recorded in player.recording.requests:
        if recorded.api not in DECIDED or recorded.response is None:
            continue
        kind = "probe" if recorded.is_probe else "response"
        where = f"{name} request {recorded.number}"
        if recorded.number not in given:
            continue
        yield compared(kind, recorded, given[recorded.number], where)


def compared(kind: str, recorded: Recorded, given: Any, where: str) -> Outcome:
    """The response of a rule beside the recorded one."""
    assert recorded.response is not None
    try:
        wanted = read_message(recorded.api, "Response", recorded.version, recorded.response)
    except (ProtocolError, ValueError, TypeError) as error:
        return Outcome(f"{kind} {recorded.api}", NOT_BUILT, where, repr(error))
    if isinstance(wanted, ElectLeadersResponse):
        given = elected_in_time(recorded, given, wanted)
    ours = comparable(given, recorded.version)
    theirs = comparable(wanted, recorded.version)
    verdict = AGREE if ours == theirs else DIFFER
    detail = f"  {recorded.request}\n  recorded {theirs}\n  ours     {ours}"
    return Outcome(f"{kind} {recorded.api}", verdict, where, detail)
