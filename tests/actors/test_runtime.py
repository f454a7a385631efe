"""One actor class, two back ends: what both runtimes promise."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Iterator
from typing import Any

import pykka
import pytest
from pykka._actor import Actor as PykkaActor

from minicluster.actors.runtime import garbage
from minicluster.actors.runtime.runtime import (
    ActorCrashed,
    BlockingCallInActor,
    ClusterActor,
    Runtime,
)
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.actors.runtime.threaded import ThreadedRuntime
from minicluster.actors.runtime.turns import Livelock

LIMIT_S = 60
LIMIT_MS = 60_000


class Echo(ClusterActor):
    """Keeps each message that it receives, then acts on it."""

    def __init__(self, peer: pykka.ActorRef[Any] | None = None) -> None:
        super().__init__()
        self.received: list[Any] = []
        self.peer = peer
        self.stopped_cleanly = False

    def on_receive(self, message: Any) -> Any:
        self.received.append(message)
        match message:
            case "boom":
                raise ValueError("boom")
            case "ask":
                assert self.peer is not None
                return self.peer.ask("hello", timeout=1)
            case ("wait", future):
                return future.get(timeout=1)
            case ("later", delay_ms):
                self.after(delay_ms, ("woken", self.now()))
            case "loop":
                self.actor_ref.tell("loop")
            case "exit":
                raise KeyboardInterrupt
            case "clock":
                return time.time()
            case "uuid":
                return uuid.uuid4()
            case "chance":
                return random.random()
        return len(self.received)

    def on_stop(self) -> None:
        self.stopped_cleanly = True


@pytest.fixture(params=["simulated", "threaded"])
def rt(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    runtime: Runtime = (
        SimulatedRuntime(seed=7) if request.param == "simulated" else ThreadedRuntime(seed=7)
    )
    yield runtime
    runtime.close()


def test_an_actor_handles_messages_in_the_order_of_their_sender(rt: Runtime) -> None:
    ref = rt.spawn(Echo, "echo")
    for number in range(5):
        ref.tell(number)
    assert ref.ask("last", timeout=LIMIT_S) == 6
    actor = rt.actor("echo")
    assert isinstance(actor, Echo)
    assert actor.received == [0, 1, 2, 3, 4, "last"]


def test_a_name_is_taken_while_its_actor_runs_and_free_after_a_kill(rt: Runtime) -> None:
    rt.spawn(Echo, "echo")
    with pytest.raises(ValueError, match="echo"):
        rt.spawn(Echo, "echo")
    rt.kill("echo")
    assert rt.spawn(Echo, "echo").ask("x", timeout=LIMIT_S) == 1


def test_an_actor_that_waits_for_another_is_refused(rt: Runtime) -> None:
    peer = rt.spawn(Echo, "peer")
    sender = rt.spawn(Echo, "blocked", peer)
    with pytest.raises(BlockingCallInActor, match="blocked"):
        sender.ask("ask", timeout=LIMIT_S)
    assert peer.ask("count", timeout=LIMIT_S) == 1  # the message was never sent


def test_an_actor_that_waits_for_a_future_is_refused(rt: Runtime) -> None:
    peer = rt.spawn(Echo, "peer")
    future = peer.ask("x", block=False)
    waiter = rt.spawn(Echo, "waiter")
    with pytest.raises(BlockingCallInActor, match="waiter"):
        waiter.ask(("wait", future), timeout=LIMIT_S)


def test_a_crash_is_reported_with_the_name_of_the_actor(rt: Runtime) -> None:
    ref = rt.spawn(Echo, "echo")
    ref.tell("boom")
    with pytest.raises(ActorCrashed, match=r"(?s)echo crashed.*ValueError: boom"):
        rt.run_until(lambda: False, LIMIT_MS)
    assert not ref.is_alive()
    assert rt.actors == ()
    rt.crashes.clear()


def test_an_actor_that_cannot_start_is_a_crash(rt: Runtime) -> None:
    class Broken(Echo):
        def on_start(self) -> None:
            raise RuntimeError("no disk")

    rt.spawn(Broken, "broken")
    with pytest.raises(ActorCrashed, match="no disk"):
        rt.run_until(lambda: False, LIMIT_MS)
    rt.crashes.clear()


def test_an_interrupt_inside_an_actor_reaches_the_test_and_no_other_cluster(rt: Runtime) -> None:
    other = SimulatedRuntime(seed=1)
    bystander = other.spawn(Echo, "bystander")
    rt.spawn(Echo, "echo").tell("exit")
    with pytest.raises(KeyboardInterrupt):
        rt.run_until(lambda: False, LIMIT_MS)
    assert bystander.ask("x") == 1
    rt.crashes.clear()
    other.close()


def test_a_killed_actor_handles_nothing_that_was_in_its_inbox(rt: Runtime) -> None:
    ref = rt.spawn(Echo, "echo")
    assert ref.ask("first", timeout=LIMIT_S) == 1
    rt.pause(("echo",))
    actor = rt.actor("echo")
    assert isinstance(actor, Echo)
    ref.tell("second")
    rt.kill("echo")
    rt.run_for(5)
    assert actor.received == ["first"]
    assert not actor.stopped_cleanly


def test_a_stopped_actor_finishes_its_inbox_first(rt: Runtime) -> None:
    ref = rt.spawn(Echo, "echo")
    actor = rt.actor("echo")
    assert isinstance(actor, Echo)
    ref.tell("one")
    rt.stop("echo")
    assert actor.received == ["one"]
    assert actor.stopped_cleanly


def test_a_paused_actor_takes_its_messages_after_the_pause(rt: Runtime) -> None:
    ref = rt.spawn(Echo, "echo")
    assert ref.ask("first", timeout=LIMIT_S) == 1
    rt.pause(("echo",))
    ref.tell("second")
    rt.run_for(5)
    actor = rt.actor("echo")
    assert isinstance(actor, Echo)
    assert actor.received == ["first"]
    rt.resume(("echo",))
    assert rt.run_until(lambda: actor.received == ["first", "second"], LIMIT_MS)


def test_a_timer_wakes_its_actor_and_a_cancelled_one_does_not(rt: Runtime) -> None:
    rt.spawn(Echo, "echo")
    actor = rt.actor("echo")
    assert isinstance(actor, Echo)
    held = threading.Event()
    rt.schedule(rt.now(), lambda _: held.wait(LIMIT_S), None)  # no timer fires meanwhile
    actor.after(20, "kept")
    actor.after(10, "cancelled").cancel()
    held.set()
    assert rt.run_until(lambda: "kept" in actor.received, LIMIT_MS)
    assert "cancelled" not in actor.received


def test_each_name_has_chance_of_its_own_that_the_seed_fixes(rt: Runtime) -> None:
    assert rt.rng("a").random() == random.Random("7/a").random()
    assert rt.rng("a").random() != rt.rng("b").random()


def test_virtual_time_jumps_to_the_next_timer() -> None:
    rt = SimulatedRuntime()
    ref = rt.spawn(Echo, "echo")
    ref.tell(("later", 3_600_000))
    actor = rt.actor("echo")
    assert isinstance(actor, Echo)
    assert rt.run_until(lambda: len(actor.received) == 2, 4_000_000)
    assert rt.now() == 3_600_000
    rt.close()


def test_actors_that_never_rest_are_a_livelock() -> None:
    rt = SimulatedRuntime()
    rt.spawn(Echo, "restless").tell("loop")
    with pytest.raises(Livelock, match="restless"):
        rt.run_for(1)
    rt.kill("restless")
    rt.close()


@pytest.mark.parametrize("call", ["clock", "uuid", "chance"])
def test_real_time_and_chance_trip_a_wire_in_a_simulated_actor(call: str) -> None:
    rt = SimulatedRuntime()
    ref = rt.spawn(Echo, "echo")
    ref.tell(call)
    with pytest.raises(ActorCrashed, match="inside a simulated actor"):
        rt.run_for(0)
    time.time()  # outside of an actor nothing is forbidden
    rt.close()


def test_the_wire_stands_only_while_the_runtime_runs() -> None:
    before, seen = time.time, []

    def condition() -> bool:
        seen.append(time.time)
        return True

    rt = SimulatedRuntime()
    rt.spawn(Echo, "echo")
    assert rt.run_until(condition, LIMIT_MS)
    assert time.time is before
    assert seen[0] is not before
    rt.close()


TRAVELS = """
from minicluster import MiniCluster

with MiniCluster(brokers=1, controllers=1) as cluster:
    import time
    import time_machine

    with time_machine.travel(0, tick=False):
        assert time.time() == 0
        cluster.run_for("1s")
    assert time.time() > 0
"""


@pytest.mark.parametrize("pace", ["", "cluster.bootstrap_servers"], ids=["alone", "thread"])
def test_time_machine_is_first_imported_while_a_cluster_runs(pace: str) -> None:
    """Its module in C calls whatever time.time is as a function of C."""
    pytest.importorskip("time_machine")
    code = TRAVELS
    if pace:  # a thread of its own carries the cluster
        code = code.replace("controllers=1", 'controllers=1, runtime="simulated", listeners=True')
        code = code.replace("    import time\n", f"    {pace}\n    import time\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_cluster_enters_pykkas_process_wide_registry(rt: Runtime) -> None:
    before = len(pykka.ActorRegistry.get_all())
    rt.spawn(Echo, "echo")
    assert len(pykka.ActorRegistry.get_all()) == before


def test_the_order_of_turns_is_fixed_by_the_seed() -> None:
    def order(seed: int) -> list[str]:
        rt = SimulatedRuntime(seed=seed)
        turns: list[str] = []

        class Noter(Echo):
            def on_receive(self, message: Any) -> Any:
                turns.append(self.name)

        refs = [rt.spawn(Noter, f"actor-{number}") for number in range(6)]
        for _ in range(3):
            for ref in refs:
                ref.tell("go")
        rt.run_for(0)
        rt.close()
        return turns

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(8)}) == 8


def test_pykka_still_has_the_hooks_that_the_back_ends_fill() -> None:
    """The contract with Pykka: these names are internal to it, and stable since 2012."""
    for hook in (
        "_create_actor_inbox",
        "_create_future",
        "_start_actor_loop",
        "_actor_loop",
        "_actor_loop_setup",
        "_actor_loop_running",
        "_actor_loop_teardown",
        "_handle_receive",
        "_handle_failure",
        "_stop",
    ):
        assert callable(getattr(PykkaActor, hook)), hook
    envelope = pykka._envelope.Envelope("message")
    assert (envelope.message, envelope.reply_to) == ("message", None)
    assert pykka.messages._ActorStop() == pykka.messages._ActorStop()


class Littering(ClusterActor):
    """Makes a cycle of objects with every step, or none, and goes on."""

    def __init__(self, litters: bool) -> None:
        super().__init__()
        self.litters, self.made = litters, list[weakref.ref[Any]]()

    def on_receive(self, message: Any) -> None:
        if self.litters:
            litter = Litter()
            litter.itself = litter
            self.made.append(weakref.ref(litter))
        self.after(1, message)


class Litter:
    itself: Any


@pytest.mark.parametrize("litters", [True, False])
def test_garbage_is_collected_while_a_run_goes_on_and_seldom_where_there_is_none(
    litters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections: list[int] = []
    collect = gc.collect

    def counted(generation: int) -> int:
        collections.append(generation)
        return collect(generation)

    monkeypatch.setattr(garbage, "STEPS_PER_COLLECTION", 100)
    monkeypatch.setattr(gc, "collect", counted)
    rt = SimulatedRuntime()
    rt.spawn(Littering, "littering", litters).tell("on")
    rt.run_for(5_000)
    actor = rt.actor("littering")
    assert isinstance(actor, Littering)
    assert sum(made() is not None for made in actor.made) < 200
    assert len(collections) >= 40 if litters else len(collections) <= 6
    rt.close()


def test_the_collector_is_off_until_the_last_simulation_has_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "_simulations", 0)  # a fixture of this worker may have one
    gc.enable()
    first, second = SimulatedRuntime(), SimulatedRuntime()
    for rt in (first, second):
        rt.run_for(1)
        rt.run_for(1)
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled()


def test_calls_after_one_that_runs_the_cluster_are_made_once_and_in_order() -> None:
    rt, made = SimulatedRuntime(), list[str]()

    def run_on(name: str) -> None:
        made.append(name)
        rt.run_for(0)

    for name in "abc":
        rt.post(5, run_on if name == "b" else made.append, name)
    rt.post(6, made.append, "d")
    rt.run_for(10)
    assert made == ["a", "b", "c", "d"]
    rt.close()
