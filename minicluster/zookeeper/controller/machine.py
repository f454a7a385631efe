"""The controller on ZooKeeper: one event after another, each to its end.

How to drive it::

    machine = ZooKeeperControllerMachine(settings, registration, new_topic_id, faults)
    for effect in machine.on_start(now_ms): …                    # the broker has registered
    for effect in machine.on_zookeeper(results, now_ms): …       # of the last RequestZooKeeper
    for effect in machine.on_watch(event, now_ms): …
    for effect in machine.on_request(token, request, version, now_ms): …
    for effect in machine.on_control_response(broker, request, response, now_ms): …
    for effect in machine.on_unclean_enabled(topic, now_ms): …   # by a config change
    for effect in machine.on_session_expired(now_ms): …          # then on_start in the next session
    for effect in machine.on_timer(name, now_ms): …

**Invariant:** an event begins when the one before it has ended, whatever ZooKeeper takes for it
(tests/zookeeper/controller/test_machine.py).

Source:  kafka.controller.KafkaController, ControllerEventManager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from minicluster.effects import Effect, FaultHit
from minicluster.faults import Faults
from minicluster.zookeeper.controller import events
from minicluster.zookeeper.controller.broker_change import (
    process_broker_change,
    process_broker_modification,
)
from minicluster.zookeeper.controller.controller_state import (
    AUTO_REBALANCE,
    ControllerState,
)
from minicluster.zookeeper.controller.effects import RequestZooKeeper
from minicluster.zookeeper.controller.errors import FAILURES, ControllerMoved
from minicluster.zookeeper.controller.fail_over import (
    process_controller_change,
    process_expire,
    process_reelect,
    process_startup,
)
from minicluster.zookeeper.controller.notifications import (
    process_control_response,
    process_isr_change_notification,
    process_log_dir_event,
    process_unclean_election_enable,
)
from minicluster.zookeeper.controller.preferred_election import (
    process_auto_preferred_election,
    process_zk_preferred_election,
)
from minicluster.zookeeper.controller.reassignment import (
    process_reassignment_isr_change,
    process_zk_reassignment,
)
from minicluster.zookeeper.controller.requests import preempted, process_request
from minicluster.zookeeper.controller.settings import ZooKeeperControllerSettings
from minicluster.zookeeper.controller.topic_change import (
    process_partition_modification,
    process_topic_change,
    process_topic_deletion,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Result
from minicluster.zookeeper.server.watches import WatchEvent
from minicluster.zookeeper.znodes.cluster import BrokerRegistration


class ZooKeeperControllerMachine:
    """One broker's candidate for the controller; the module shows how to drive it.

    Source:  kafka.controller.KafkaController, ControllerEventManager.
    """

    def __init__(
        self,
        *,
        settings: ZooKeeperControllerSettings,
        registration: BrokerRegistration,
        new_topic_id: Callable[[], UUID],
        faults: Faults = Faults.NONE,
    ) -> None:
        self.state = ControllerState(settings, registration, new_topic_id, faults)
        self._process: Process[Any] | None = None
        self._waits = False  # for results of ZooKeeper

    @property
    def is_idle(self) -> bool:
        """No event is under way, and none waits."""
        return self._process is None and not self.state.queue

    def on_start(self, now_ms: int) -> list[Effect]:
        """Begin, once the broker has registered in a new session.

        Source:  KafkaController.startup, Startup.
        """
        return self._put(events.Startup(), now_ms)

    def on_watch(self, watched: WatchEvent, now_ms: int) -> list[Effect]:
        """Handle the event of a watch that has fired.

        Shapes:  a watch that has no event here is ignored.
        """
        nodes, children = self.state.watched_nodes, self.state.watched_children
        event = events.event_of(watched, nodes=nodes, children=children)
        return [] if event is None else self._put(event, now_ms)

    def on_request(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Decide a request in turn with the other events.

        Errors:  in the response; TypeError for a request that the controller does not decide.
        """
        return self._put(events.RequestReceived(token, request, version, now_ms), now_ms)

    def on_control_response(
        self, broker: int, request: Any, response: Any, now_ms: int
    ) -> list[Effect]:
        """Take the response to a LeaderAndIsr, StopReplica or UpdateMetadata.

        Shapes:  request is the one that the controller has sent to this broker.
        """
        return self._put(events.ControlResponse(broker, request, response), now_ms)

    def on_unclean_enabled(self, topic: str | None, now_ms: int) -> list[Effect]:
        """Elect unclean leaders, which are allowed from now on.

        Shapes:  topic is None where the default of all topics has changed.
        """
        return self._put(events.UncleanElectionEnable(topic), now_ms)

    def on_unclean_default(self, allowed: bool, now_ms: int) -> list[Effect]:
        """Take whether unclean leaders are allowed where a topic says nothing (KIP-226)."""
        before, self.state.unclean_by_default = self.state.unclean_by_default, allowed
        return self.on_unclean_enabled(None, now_ms) if allowed and not before else []

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Look for leaders that are not the preferred ones.

        Shapes:  name is AUTO_REBALANCE, the only timer.
        """
        assert name == AUTO_REBALANCE, name
        return self._put(events.AutoPreferredElection(), now_ms)

    def on_session_expired(self, now_ms: int) -> list[Effect]:
        """Give up the events that wait; the one under way ends first.

        Source:  KafkaController.Expire, PreemptableControllerEvent.preempt.
        """
        self.state.now_ms = now_ms
        waiting = list(self.state.queue)
        self.state.queue.clear()
        for event in waiting:
            preempted(self.state, event)
        return self._put(events.Expire(), now_ms)

    def on_zookeeper(self, results: Sequence[Result], now_ms: int) -> list[Effect]:
        """Continue with the results of the last requests to ZooKeeper.

        Shapes:  one result per request, in their order.
        """
        assert self._process is not None and self._waits
        self.state.now_ms, self._waits = now_ms, False
        self._step(tuple(results))
        return self._run()

    def _put(self, event: events.ControllerEvent, now_ms: int) -> list[Effect]:
        self.state.now_ms = now_ms
        self.state.put(event)
        return self._run()

    def _run(self) -> list[Effect]:
        state = self.state
        while self._process is None and state.queue:
            self._process = self._begin(state.queue.popleft())
            if self._process is not None:
                self._step(None)
        effects, state.effects = state.effects, []
        return [*effects, *(FaultHit(fault) for fault in state.take_hits())]

    def _step(self, results: tuple[Result, ...] | None) -> None:
        """Continue the event to its next requests, or to its end."""
        assert self._process is not None
        try:
            requests = next(self._process) if results is None else self._process.send(results)
        except StopIteration:
            self._process = None
        except ControllerMoved:
            self._process = process_controller_change(self.state)
            self._step(None)
        except FAILURES:
            self._process = None
        else:
            self._waits = True
            self.state.effects.append(RequestZooKeeper(requests))

    def _begin(self, event: events.ControllerEvent) -> Process[Any] | None:
        state = self.state
        match event:
            case events.Startup():
                return process_startup(state)
            case events.ControllerChange():
                return process_controller_change(state)
            case events.Reelect():
                return process_reelect(state)
            case events.Expire():
                process_expire(state)
                return None
            case events.BrokerChange():
                return process_broker_change(state)
            case events.BrokerModification():
                return process_broker_modification(state, event.broker)
            case events.TopicChange():
                return process_topic_change(state)
            case events.PartitionModification():
                return process_partition_modification(state, event.topic)
            case events.TopicDeletion():
                return process_topic_deletion(state)
            case events.ZkReassignment():
                return process_zk_reassignment(state)
            case events.ZkPreferredElection():
                return process_zk_preferred_election(state)
            case events.ReassignmentIsrChange():
                return process_reassignment_isr_change(state, event.partition)
            case events.IsrChangeNotification():
                return process_isr_change_notification(state)
            case events.LogDirEventNotification():
                return process_log_dir_event(state)
            case events.AutoPreferredElection():
                return process_auto_preferred_election(state)
            case events.UncleanElectionEnable():
                return process_unclean_election_enable(state, event.topic)
            case events.ControlResponse():
                return process_control_response(state, event)
            case events.RequestReceived():
                return process_request(state, event)
        raise TypeError(f"no process of {event}")
