"""Scenario files: what is read is what is written, and a slip gets one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.errors import UserError
from minicluster.scenario import ScenarioError, load_scenario, parse_scenario
from minicluster.scenario.actions.network import Delay
from minicluster.scenario.actions.topics import CreateTopic
from minicluster.scenario.reading import scenario_of
from minicluster.scenario.scenario import to_yaml

STALE = """
cluster: {controllers: 3, brokers: 3, seed: 24301, rules: kafka-4.3, metadata_version: 4.3-IV0}
faults: [Z01]
exercises: [A1, B3]
steps:
  - {at: 0s, do: create_topic, name: t, partitions: 1, replicas: 3, min_isr: 2}
  - {at: 1s, do: delay, src: leader(t-0), dst: active_controller(), mean: 3s, api: AlterPartition}
  - {after: 200ms, do: cut, src: follower(t-0), dst: leader(t-0), lasting: 35s}
  - {until: isr(t-0) == 2, within: 60s}
  - {after: 50ms, do: kill, node: follower(t-0), lose_tail: unflushed}
  - {after: 10s, do: restart, node: follower(t-0)}
  - {expect: leader(t-0) != none}
  - {after: 0s, do: liveness, bound: 60s}
"""


def test_durations_are_milliseconds_and_selectors_stay_symbolic() -> None:
    scenario = parse_scenario(STALE)
    assert scenario.steps[1].at_ms == 1_000
    delay = scenario.steps[1].action
    assert isinstance(delay, Delay) and delay.mean == 3_000
    assert [str(node) for node in delay.src] == ["leader(t-0)"]
    assert delay.api == ("AlterPartition",)
    assert scenario.steps[3].within_ms == 60_000
    assert scenario.faults == ("Z01",)
    assert scenario.exercises == ("A1", "B3")


def test_a_bug_of_kafkas_own_is_a_fault_like_any_other() -> None:
    scenario = parse_scenario("faults: [Z54, Z01, Z52]\nsteps: [{do: heal}]")
    assert scenario.faults == ("Z01", "Z54", "Z52")
    assert parse_scenario(to_yaml(scenario.to_dict())) == scenario


def test_a_scenario_written_out_reads_back_as_itself() -> None:
    scenario = parse_scenario(STALE, name="stale")
    assert parse_scenario(to_yaml(scenario.to_dict())) == scenario


def test_a_step_shows_itself_in_one_line() -> None:
    scenario = parse_scenario(STALE)
    assert scenario.steps[4].text == "kill node=follower(t-0) lose_tail=unflushed"
    assert scenario.steps[3].text == "until isr(t-0) == 2 (within 1m)"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("- {do: dance}", "step 1: unknown action 'dance'; known: create_topic"),
        ("- {do: kill}", "step 1: kill needs 'node'"),
        ("- {do: kill, node: broker(1), hard: true}", "kill has no argument 'hard'"),
        ("- {do: cut, src: boss(), dst: brokers}", "unknown selector boss()"),
        ("- {do: cut, src: brokers, dst: controllers, lasting: -35}", "-35 is not a duration"),
        ("- {do: cut, src: brokers, dst: controllers, lasting: soon}", "'soon' is not a duration"),
        ("- {after: -1, do: heal}", "-1 is not a duration; write seconds, or a number with a unit"),
        ("- {at: 1s, after: 1s, do: heal}", "at or after, not both"),
        ("- {until: isr(t-0) = 2}", "write '=='"),
        ("- {until: isr(t-0) == 2, do: heal}", "one of do, until and expect"),
        ("- {until: quorum(t-0)}", "unknown selector quorum()"),
        ("- {do: loss, src: brokers, dst: all, p: 1.5}", "1.5 is not a number from 0 to 1"),
        ("- {do: mutate, fault: Z99}", "'Z99' is not a planted fault"),
        ("- {do: elect, partitions: orders}", "not a partition"),
        ("- {do: kill, node: broker(1), lose_tail: some}", "not one of none, torn, unflushed, all"),
        ("- {do: kill, node: follower(t-0, n=1)}", "'n=1)' is the rest of a value: a value with"),
        ("- heal", "a step is a mapping"),
        ("", "list of steps is missing"),
    ],
)
def test_a_wrong_step_is_named_with_what_to_write(steps: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_scenario(f"steps:\n{steps}", where="my.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("my.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: [", "scenario:1:9: not YAML: "),
        ("- 1", "a scenario is a mapping"),
        ("cluster: {brokers: none}\nsteps: [{do: heal}]", "brokers: 'none' is not a whole number"),
        ("cluster: {rules: kafka-1.0}\nsteps: [{do: heal}]", "'kafka-1.0' is not known"),
        ("cluster: {runtime: real}\nsteps: [{do: heal}]", "runtime: 'real'"),
        ("cluster: {listeners: 3}\nsteps: [{do: heal}]", "listeners: 3 is not true or false"),
        ("cluster: {pace: 0}\nsteps: [{do: heal}]", "pace: 0 is not a number from 0.01 to 1000"),
        ("cluster: {runtime: threaded, pace: 1}\nsteps: [{do: heal}]", "pace: threads run in real"),
        ("faults: [Z99]\nsteps: [{do: heal}]", "'Z99' is not a planted fault"),
        ("topology: 3\nsteps: [{do: heal}]", "'topology' is not known here"),
    ],
)
def test_a_wrong_header_is_named(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_scenario(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("partitions: 5, assignment: [[1, 2]]", "partitions is 5, and assignment has 1 partition"),
        ("replicas: 2, assignment: [[1, 2, 3]]", "replicas is 2, and assignment has another"),
        ("min_isr: 2, configs: {min.insync.replicas: 1}", "min_isr is 2, and configs has"),
        (
            "unclean: true, configs: {unclean.leader.election.enable: false}",
            "unclean is True, and configs has unclean.leader.election.enable: false",
        ),
    ],
)
def test_arguments_of_a_topic_that_contradict_each_other_are_named(
    arguments: str, message: str
) -> None:
    """One of the two was taken without a word."""
    with pytest.raises(UserError) as caught:
        parse_scenario(f"steps: [{{do: create_topic, name: orders, {arguments}}}]")
    assert message in str(caught.value)


def test_a_topic_may_say_twice_what_is_the_same() -> None:
    assignment = "partitions: 2, replicas: 3, assignment: [[1, 2, 3], [2, 3, 1]]"
    configs = "min_isr: 1, configs: {min.insync.replicas: 1}"
    text = f"steps: [{{do: create_topic, name: orders, {assignment}, {configs}}}]"
    assert isinstance(parse_scenario(text).steps[0].action, CreateTopic)


@pytest.mark.parametrize(
    ("cluster", "runtime"),
    [
        ("{}", "simulated"),
        ("{listeners: true}", "threaded"),
        ("{listeners: true, pace: 10}", "simulated"),
        ("{listeners: true, runtime: simulated}", "simulated"),
    ],
)
def test_listeners_take_threads_unless_a_pace_is_given(cluster: str, runtime: str) -> None:
    scenario = parse_scenario(f"cluster: {cluster}\nsteps: [{{do: heal}}]")
    assert scenario.runtime == runtime
    assert scenario_of(scenario.to_dict(), where="again") == scenario


def test_a_file_that_is_not_there_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no such file"):
        load_scenario(tmp_path / "gone.yaml")
