"""Upper bounds and exact rates: a cluster does what a scenario has, or refuses it in one line."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.nodes.config import ABOVE_ZERO, COUNTS, DURATIONS
from minicluster.errors import UserError
from minicluster.scenario import ScenarioError, parse_scenario


def step(text: str) -> str:
    return f"steps:\n- {text}\n"


HEAL = step("{do: heal}")

TOO_MUCH = {
    "brokers": ("cluster: {brokers: 101}\n" + HEAL, "1:20: brokers: 101 is not"),
    "controllers": ("cluster: {controllers: 26}\n" + HEAL, "1:24: controllers: 26 is not"),
    "no controllers": ("cluster: {controllers: 0}\n" + HEAL, "from 1 to 25"),
    "seed": (f"cluster: {{seed: {2**63}}}\n" + HEAL, "a number of very many digits is not"),
    "name": (f"name: {'a' * 201}\n" + HEAL, "a text of 201 characters; at most 200"),
    "steps": ("steps:\n" + "- {do: heal}\n" * 10_001, "10001 steps; at most 10000 are allowed"),
    "partitions": (
        step("{do: create_topic, name: a, partitions: 10000}"),
        "partitions: 10000 is not a whole number from 1 to 9999",
    ),
    "replicas": (step("{do: create_topic, name: a, replicas: 101}"), "from 1 to 100"),
    "total": (step("{do: add_partitions, name: a, total: 10000}"), "from 1 to 9999"),
    "count": (step("{do: produce, topic: a, count: 1000001}"), "from 0 to 1000000"),
    "rate": (step("{do: produce, topic: a, rate: 100001}"), "rate: 100001 is not"),
    "no rate": (step("{do: produce, topic: a, rate: 0}"), "above 0"),
    "rate that is none": (step("{do: produce, topic: a, rate: .nan}"), "rate: nan is not"),
    "duration": (step("{do: bounce, node: broker(1), down: 9000h}"), "more than a year"),
    "after": (step("{after: 9000h, do: heal}"), "more than a year"),
    "text": (step(f"{{do: delete_topic, name: {'a' * 10_001}}}"), "a text of 10001 characters"),
    "number": (step(f"{{do: kill, node: {'9' * 41}}}"), "a number of 41 characters; 40 are"),
    "condition": (step(f"{{expect: {'not ' * 600}fenced(brokers)}}"), "at most 2000 are allowed"),
    "parentheses": (
        step(f"{{expect: '{'(' * 400}fenced(brokers){')' * 400}'}}"),
        "parentheses and lists nest deeper than 32 levels",
    ),
    "directory": (step("{do: fail_dir, broker: broker(1), directory: 100}"), "from 0 to 99"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_more_than_the_bound_is_refused_before_the_play(what: str) -> None:
    text, message = TOO_MUCH[what]
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, where="my.yaml")
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1 and len(str(refused.value)) < 600


NO_CONDITIONS = ("12", "brokers", "true", "1 == 1", "not false", "true or 1 < 2", "[1, 2] == 2")


@pytest.mark.parametrize("kind", ("expect", "until"))
@pytest.mark.parametrize("text", NO_CONDITIONS)
def test_an_expression_that_always_holds_is_no_condition(kind: str, text: str) -> None:
    with pytest.raises(ScenarioError, match=r"^my.yaml:2:3: step 1: "):
        parse_scenario(step(f"{{{kind}: '{text}'}}"), where="my.yaml")


IGNORED = {
    "{expect: 'leader(a-0) == follower(a-0, N=1)'}": "N= is not known; it takes n alone",
    "{do: kill, node: active_controller(1)}": "active_controller() takes no argument",
    "{do: kill, node: 'leader(a-0, n=1)'}": "n= is not known; it takes no argument with a name",
    "{expect: 'fenced(broker(1), broker(2))'}": "not 2 arguments",
    "{do: reassign, partitions: [a-0, a-0], replicas: [1, 2]}": "a-0 is given twice",
    "{do: elect, partitions: [a-1, b-0, a-1]}": "a-1 is given twice",
    "{do: produce, topic: a, rate: 5, count: 7}": "count does not go with a rate",
    "{do: produce, topic: a, rate: 5, within: 7s}": "within does not go with a rate",
    "{do: produce, topic: a, rate: 5, to: broker(1)}": "to does not go with a rate",
    "{do: produce, topic: a, rate: 5, idempotent: true}": "idempotent does not go with a rate",
    "{do: produce, topic: a, count: 5, lasting: 7s}": "lasting needs a rate",
}


@pytest.mark.parametrize("text", IGNORED)
def test_nothing_that_is_given_is_ignored(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_scenario(step(text), where="my.yaml")
    assert str(refused.value).startswith("my.yaml:2:3: step 1")
    assert IGNORED[text] in str(refused.value)


@pytest.mark.parametrize("rate", (0.5, 3, 7, 600, 999, 1_000, 1_700, 2_500))
def test_a_rate_is_what_was_requested(rate: float) -> None:
    """Above 1,000 per second there are several records in one millisecond."""
    seconds = 10 if rate < 100 else 1 if rate < 1_500 else 0.2
    with MiniCluster(brokers=1, controllers=1, seed=3) as cluster:
        cluster.create_topic("orders", replicas=1)
        load = cluster.produce("orders", rate=rate, lasting=f"{seconds}s", acks="0")
        cluster.run_for(f"{seconds + 1}s")
        assert len(load) == rate * seconds


@pytest.mark.parametrize("name", sorted(ABOVE_ZERO))
def test_a_time_that_no_cluster_can_have_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"^config: {name}: 0 is not a whole number from 1 to "):
        MiniCluster(config={name: 0})


@pytest.mark.parametrize("name", sorted(set(DURATIONS) - ABOVE_ZERO))
def test_the_other_times_may_be_zero(name: str) -> None:
    assert getattr(inside(MiniCluster(config={name: "0s"})).config, DURATIONS[name]) == 0


@pytest.mark.parametrize("value", (10**30, -1, "9" * 5_000, "\u0665", True, [1], None, 1.5))
@pytest.mark.parametrize("name", sorted([*COUNTS, *DURATIONS]))
def test_a_setting_out_of_its_bounds_is_one_line(name: str, value: Any) -> None:
    with pytest.raises(UserError) as refused:
        MiniCluster(config={name: value})
    text = str(refused.value)
    assert name in text and len(text.splitlines()) == 1 and len(text) < 300
