"""An action that has nothing to act on is a mistake of a test, and a note of a scenario."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.time_bounds import healed_ms
from minicluster.actors.play.player import play_once
from minicluster.errors import UserError
from minicluster.scenario import parse_scenario

Act = Callable[[MiniCluster], object]
EMPTY: tuple[Act, ...] = (
    lambda c: c.kill([]),
    lambda c: c.cut([], 1),
    lambda c: c.cut(1, 2, api=[]),
    lambda c: c.isolate(iter(())),
    lambda c: c.delete_topic([]),
    lambda c: c.elect([]),
    lambda c: c.create_topic("bills", assignment=[]),
    lambda c: inside(c).is_running([]),
)
NO_LINK: tuple[Act, ...] = (
    lambda c: c.cut(1, 1),
    lambda c: c.partition([1], [1]),
    lambda c: c.partition([], [1]),
    lambda c: c.isolate(inside(c).node_ids),
    lambda c: c.delay(1, 1, mean="1s"),
    lambda c: c.loss(c.brokers[0], 1, p=0.5),
    lambda c: c.hold(1, 1),
)


def test_a_test_is_shown_that_nothing_was_acted_on() -> None:
    with MiniCluster(brokers=2, controllers=1, seed=1) as cluster:
        for act in EMPTY:
            with pytest.raises(UserError, match="an empty list names no"):
                act(cluster)
        for act in NO_LINK:
            with pytest.raises(UserError, match="no link lies between these nodes"):
                act(cluster)
        cluster.cut(1, [1, 2])  # one link is left
        assert len(inside(cluster).network.conditions) == 1


def test_a_step_that_names_one_node_by_its_id_twice_is_refused() -> None:
    story = "cluster: {brokers: 2, controllers: 1}\nsteps: [{do: cut, src: 1, dst: 1}]"
    with pytest.raises(UserError, match=r"step 1 .*: cut: no link lies between these nodes"):
        play_once(parse_scenario(story))


def test_a_step_whose_selectors_name_one_node_now_is_a_note() -> None:
    story = """
cluster: {brokers: 1, controllers: 1}
steps:
  - {do: cut, src: active_controller(), dst: controllers}
  - {expect: unfenced(brokers)}
"""
    cluster, failure = play_once(parse_scenario(story))
    assert failure is None
    (row,) = cluster.recorder.table("fault")
    assert (row["action"], row["phase"]) == ("cut", "note")
    assert "no link lies" in row["detail"]


def test_the_promises_count_from_the_last_step_that_changed_the_cluster() -> None:
    """A ``heal``, a ``release`` and a ``publish_delay`` with nothing to end come later."""
    with MiniCluster(brokers=2, controllers=1, seed=1) as cluster:
        cluster.run_for("1s")
        cluster.cut(1, 2)
        cluster.publish_delay(1, "50ms")
        cluster.run_for("2s")
        assert healed_ms(inside(cluster)) is None
        cluster.publish_delay(1, "0ms")
        cluster.heal()
        since_ms = cluster.now_ms
        cluster.run_for("3s")
        cluster.heal()
        cluster.release()
        cluster.publish_delay(1, "0ms")
        cluster.run_for("1s")
        assert healed_ms(inside(cluster)) == since_ms
        cluster.bounce(2)
        assert healed_ms(inside(cluster)) is None
