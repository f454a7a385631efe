"""Steps as one line of text: the same declared actions as in a file, and slips in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.errors import UserError
from minicluster.scenario import ScenarioError, Step, load_scenario
from minicluster.scenario.nemesis import generate
from minicluster.scenario.reading import steps_of
from minicluster.scenario.step_text import parse_step
from minicluster.scenario.vocabulary import ACTIONS
from minicluster.values import replace

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("examples/*.yaml"), *ROOT.glob("tests/*/*.yaml")])

SAME = {
    "kill leader(orders-0)": {"do": "kill", "node": "leader(orders-0)"},
    "kill node=leader(orders-0) lose_tail=unflushed": {
        "do": "kill", "node": "leader(orders-0)", "lose_tail": "unflushed",
    },
    "pause 2 lasting=5s": {"do": "pause", "node": 2, "lasting": "5s"},
    "cut follower(orders-0, n=1)  brokers both=true api=[Fetch, Produce]": {
        "do": "cut", "src": "follower(orders-0, n=1)", "dst": "brokers", "both": True,
        "api": ["Fetch", "Produce"],
    },
    "partition [[broker(1), follower(orders-0, n=0)], controllers]": {
        "do": "partition", "groups": [["broker(1)", "follower(orders-0, n=0)"], "controllers"],
    },
    "partition groups=[1,2]": {"do": "partition", "groups": [1, 2]},
    "create_topic orders partitions=3 configs={min.insync.replicas: 2, cleanup.policy: compact}": {
        "do": "create_topic", "name": "orders", "partitions": 3,
        "configs": {"min.insync.replicas": 2, "cleanup.policy": "compact"},
    },
    "set_config retention.ms -1 topic='my orders'": {
        "do": "set_config", "key": "retention.ms", "value": -1, "topic": "my orders",
    },
    "set_config key=retention.ms value=null": {
        "do": "set_config", "key": "retention.ms", "value": None,
    },
    "produce orders 1 count=10 acks=1": {
        "do": "produce", "topic": "orders", "partition": 1, "count": 10, "acks": 1,
    },
    "create_topic orders may_fail=true": {
        "do": "create_topic", "name": "orders", "may_fail": True,
    },
    "heal": {"do": "heal"},
    "heal brokers": {"do": "heal", "src": "brokers"},
    "  fail_over  ": {"do": "fail_over"},
    "expect leader(orders-0) == broker(2)": {"expect": "leader(orders-0) == broker(2)"},
    "until fully_in_sync(orders-0)": {"until": "fully_in_sync(orders-0)"},
    "until fully_in_sync(orders-0) within 5s": {
        "until": "fully_in_sync(orders-0)", "within": "5s",
    },
    "until isr(orders-0) == 2 within=5s": {"until": "isr(orders-0) == 2", "within": "5s"},
    "{do: kill, node: 'leader(orders-0)'}": {"do": "kill", "node": "leader(orders-0)"},
    "- {do: heal}": {"do": "heal"},
    "{expect: 'isr(orders-0) == 2'}": {"expect": "isr(orders-0) == 2"},
}  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_a_line_is_the_step_of_a_file(text: str) -> None:
    [of_a_file] = steps_of([SAME[text]], "file")
    assert parse_step(text) == of_a_file


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_step_of_a_file_is_read_again_from_its_own_text(path: Path) -> None:
    for step in load_scenario(path).steps:
        again = parse_step(step.text, step.number)
        assert again == replace(step, at_ms=None, after_ms=0), step.text


@pytest.mark.parametrize("seed", range(20))
def test_random_steps_are_read_again_from_their_own_text(seed: int) -> None:
    for step in generate(seed).steps:
        again = parse_step(step.text, step.number)
        assert again == replace(step, at_ms=None, after_ms=0), step.text


@given(st.text(max_size=30), st.text(max_size=30) | st.none() | st.integers())
def test_any_value_of_a_config_is_read_again(key: str, value: str | int | None) -> None:
    try:
        [step] = steps_of([{"do": "set_config", "key": key, "value": value}], "file")
    except ScenarioError:
        return
    if not all(char.isprintable() for char in step.text):
        return  # YAML escapes them, a line of a shell has none
    assert parse_step(step.text) == step


SLIPS = {
    "": "it is empty; write one such as kill leader(orders-0)",
    "kil leader(orders-0)": "unknown action 'kil'; did you mean kill?",
    "expct isr(orders-0) == 2": "unknown action 'expct'; did you mean expect?",
    "kill": "kill needs 'node': a selector",
    "kill ledaer(orders-0)": "unknown selector ledaer(); did you mean leader?",
    "kill nod=leader(orders-0)": "kill has no argument 'nod'; did you mean node?",
    "kill broker(1) broker(2)": "has no name; write one, as in lose_tail=broker(2); kill",
    "kill node=broker(1) broker(2)": "has no name; write one, as in lose_tail=broker(2); kill",
    "kill broker(1) node=broker(2)": "'node' is given twice",
    "kill leader(orders-0": "')' is missing",
    "kill leader(orders-0))": "')' closes nothing",
    "kill [leader(orders-0]": "')' is missing",
    "kill 'broker(1)": '"\'" is missing',
    "create_topic orders 5": "'5' has no name; write one, as in partitions=5; create_topic takes",
    "fail_over now": "'now' has no name; write one, as in within=now; fail_over takes within",
    "wait 5s": "'5s' has no name; wait takes nothing",
    "pause broker(1) lasting=5 parsecs": "'parsecs' has no name",
    "expect": "something is missing",
    "expect 1 == 1": "reads nothing of the cluster",
    "expect leader(orders-0)": "is nodes, not a condition",
    "until isr(orders-0) == 2 within=soon": "within: 'soon' is not a duration",
    "{do: kill": "not YAML",
    "{kill: broker(1)}": "a step has one of do, until and expect; write do: kill",
    "{kil: broker(1)}": "a step has one of do, until and expect; write do: kill",
    "{node: broker(1)}": "a step has one of do, until and expect",
    "{after: 5s, do: heal}": "this step fires at once; leave out at and after",
    "kill &a broker(1)": "&a is an anchor",
    "kill " + "(" * 50 + ")" * 50: "brackets nest deeper than 32 levels",
    "kill broker(1)" + " " * 5_000: "a text of 5014 characters; at most 4000 are allowed",
    "kill \ud800": "half of a surrogate pair",
}


@pytest.mark.parametrize("text", SLIPS, ids=lambda text: text[:30].encode("utf-8", "replace"))
def test_a_slip_is_one_line_with_what_to_write(text: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_step(text)
    assert SLIPS[text] in str(refused.value)
    assert "\n" not in str(refused.value)


PIECES = st.sampled_from(
    [*ACTIONS, "until", "expect", "within", "=", "==", "(", ")", "[", "]", "{", "}", "'", '"', ",",
     " ", "leader(orders-0)", "broker(1)", "node", "-", ":", "null", "3", "5s", "\n", "\x00", "&"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=60))
def test_any_text_is_a_step_or_one_line(text: str) -> None:
    try:
        assert isinstance(parse_step(text), Step)
    except UserError as refused:
        assert "\n" not in str(refused)
