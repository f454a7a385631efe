"""The face of a cluster: its life, its handles, what its arguments are."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import re
import time
from typing import Any

import pytest

import minicluster
from minicluster import MiniCluster, Topic, UserError, WaitTimeout
from minicluster.actors.cluster.mini_cluster import OF_THIS_PACKAGE, inside
from minicluster.fixtures import plugin
from minicluster.scenario.actions.action import arguments_of
from minicluster.scenario.vocabulary import ACTIONS
from minicluster.verify import verify

AFTER_STOP: dict[str, Any] = {
    "kill": lambda c: c.kill(1),
    "create topic orders": lambda c: c.create_topic("orders"),
    "run_for": lambda c: c.run_for(1),
    "wait_until": lambda c: c.wait_until(lambda: True),
    "wait_for_group": lambda c: c.wait_for_group("g"),
    "list reassignments": lambda c: c.reassignments(),
    "bootstrap_servers": lambda c: c.bootstrap_servers,
}


@pytest.mark.parametrize("how", [{}, {"runtime": "threaded"}, {"listeners": True}])
def test_every_call_after_the_end_fails_at_once(how: dict[str, Any]) -> None:
    cluster = MiniCluster(brokers=1, controllers=1, **how).start()
    orders = cluster.create_topic("orders")
    cluster.close()
    began_s = time.monotonic()
    for name, call in AFTER_STOP.items():
        if name == "bootstrap_servers" and not how.get("listeners"):
            continue
        with pytest.raises(UserError, match="the cluster has been stopped") as refused:
            call(cluster)
        assert "\n" not in str(refused.value)
    assert time.monotonic() - began_s < 1
    assert orders.exists and cluster.brokers == (1,)  # what was committed can still be read
    cluster.stop()


def test_a_cluster_that_ended_by_an_error_has_been_stopped() -> None:
    with pytest.raises(KeyError), MiniCluster(brokers=1, controllers=1) as cluster:
        raise KeyError
    with pytest.raises(UserError, match="run_for: the cluster has been stopped"):
        cluster.run_for(1)


@pytest.mark.mini_cluster(brokers=1, controllers=1)
def test_a_topic_of_a_small_cluster_needs_no_count_of_replicas(mini_cluster: MiniCluster) -> None:
    assert mini_cluster.create_topic("orders")[0].replicas == [1]


@pytest.mark.mini_cluster(brokers=4, controllers=1)
def test_a_topic_has_three_replicas_where_there_are_brokers(mini_cluster: MiniCluster) -> None:
    assert len(mini_cluster.create_topic("orders")[0].replicas) == 3


def test_a_topic_that_never_was_does_not_exist(mini_cluster: MiniCluster) -> None:
    nope = mini_cluster.topic("nope")
    assert isinstance(nope, Topic) and not nope.exists and nope.partitions == ()
    with pytest.raises(UserError, match="there is no topic nope"):
        nope[0]
    mini_cluster.create_topic("nope", partitions=2)
    assert nope.exists and nope.partitions == (nope[0], nope[1])


def test_offsets_show_what_was_deleted(mini_cluster: MiniCluster) -> None:
    orders = mini_cluster.create_topic("orders")
    mini_cluster.produce(orders, count=5)
    assert (orders[0].log_start_offset, orders[0].log_end_offset) == (0, 5)
    mini_cluster.delete_records(orders[0], before=3)
    assert (orders[0].log_start_offset, orders[0].log_end_offset) == (3, 5)
    mini_cluster.kill(mini_cluster.brokers)
    assert (orders[0].log_start_offset, orders[0].log_end_offset) == (-1, -1)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_waited_for(mini_cluster: MiniCluster, protocol: Any) -> None:
    orders = mini_cluster.create_topic("orders", partitions=2)
    with pytest.raises(WaitTimeout, match="waiting for group g to be Stable: "):
        mini_cluster.wait_for_group("g", within=1)
    mini_cluster.consume(orders, group="g", members=2, protocol=protocol, lasting="20s")
    mini_cluster.wait_for_group("g", members=2)
    with pytest.raises(WaitTimeout, match="Stable with 3 members: it is Stable with 2 members"):
        mini_cluster.wait_for_group("g", members=3, within=1)
    mini_cluster.wait_for_group("g", state="Empty", members=0)
    with pytest.raises(UserError, match="did you mean Stable"):
        mini_cluster.wait_for_group("g", state="stable")


def test_what_the_cluster_may_reject_is_a_note_where_it_may(mini_cluster: MiniCluster) -> None:
    mini_cluster.create_topic("orders")
    assert mini_cluster.create_topic("orders", may_fail=True) is None
    notes = [r for r in inside(mini_cluster).recorder.table("fault") if r["phase"] == "note"]
    assert [(r["action"], r["detail"].partition(":")[0]) for r in notes] == [
        ("create_topic", "create topic orders")
    ]
    with pytest.raises(UserError, match="create_topic: partitions"):
        mini_cluster.create_topic("more", partitions=0, may_fail=True)


def test_an_argument_that_there_is_not_is_named() -> None:
    for wrong, expected in (
        ({"broker": 3}, "MiniCluster: unknown argument 'broker'; did you mean brokers?"),
        ({"brokers": 0}, "brokers: 0 is not a whole number from 1 to 100"),
    ):
        with pytest.raises(UserError) as refused:
            MiniCluster(**wrong)
        assert str(refused.value) == expected
    with pytest.raises(UserError, match="3 has no name; write brokers=3"):
        MiniCluster(3)  # type: ignore[call-arg, misc]


def test_arguments_for_this_package_are_out_of_sight() -> None:
    """Each of the others has its line in the text, and its name in the help of the marker."""
    names = list(inspect.signature(MiniCluster).parameters)
    assert {*names}.isdisjoint(OF_THIS_PACKAGE) and len(names) == 19
    text = inspect.getdoc(MiniCluster.__init__) or ""
    described = re.findall(r"^(?:Arguments:|   ) (\w+): ", text, re.M)
    assert described == names
    in_help = re.findall(r"(\w+)=", plugin._MARKER_HELP)
    assert in_help == names


def test_the_package_shows_what_tests_import() -> None:
    assert dir(minicluster) == sorted(minicluster.__all__)
    assert all(getattr(minicluster, name) is not None for name in minicluster.__all__)
    assert {"WaitTimeout", "UserError", "Report", "Topic", "Partition", "Node"} <= {
        *dir(minicluster)
    }


def test_no_argument_shadows_a_builtin_or_means_its_opposite() -> None:
    methods = [getattr(MiniCluster, name) for name in dir(MiniCluster) if name[0] != "_"]
    functions = [value for value in methods if callable(value)]
    functions += [verify, minicluster.mini_cluster_fixture, MiniCluster]
    names = {name for function in functions for name in inspect.signature(function).parameters}
    names |= {name for action in ACTIONS.values() for name in arguments_of(action)}
    assert names.isdisjoint({*dir(builtins), "off"})


@pytest.mark.parametrize("how", [{}, {"runtime": "threaded"}])
def test_tasks_continue_while_a_condition_is_awaited(how: dict[str, Any]) -> None:
    """A task changes what the condition looks at; waiting in the loop's thread would stop it."""

    async def test(cluster: MiniCluster) -> None:
        orders, done = cluster.create_topic("orders"), asyncio.Event()

        async def later() -> None:
            await asyncio.sleep(0)
            done.set()

        task = asyncio.create_task(later())
        await cluster.until(lambda: orders[0].fully_in_sync() and done.is_set(), within="20s")
        with pytest.raises(WaitTimeout, match="timed out after 1s waiting for"):
            await cluster.until(lambda: False, within=1)
        with pytest.raises(WaitTimeout, match="event loop stood still; write: await until"):
            cluster.wait_until(lambda: False, within=1)
        await task

    with MiniCluster(brokers=1, controllers=1, **how) as cluster:
        asyncio.run(test(cluster))
