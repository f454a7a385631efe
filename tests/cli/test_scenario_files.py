"""Commands about scenario files and their runs: check, schema, list, completion, places of runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from minicluster.cli import run
from minicluster.scenario.reading import load_scenario, parse_scenario
from minicluster.scenario.scenario import to_yaml
from minicluster.scenario.schema import scenario_schema
from minicluster.scenario.vocabulary import ACTIONS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*.yaml"))

BAD = """\
name: bad
color: blue
cluster: {brokers: three, controlers: 1, pace: -1, config: {log.dirz: d0}}
faults: [S11, X9, Y8]
exercises: [A1, A999]
steps:
  - {do: create_topic, name: orders, replicas: 200, partitions: x, unclaen: true}
  - {do: kil, node: broker(1)}
  - {do: kill}
  - {at: x, do: pause, node: "leader(orders)", lasting: y}
  - {until: "fenced(broker(1)", within: soon}
  - {expect: isr(orders-0) = 2}
  - do: produce
    topic: orders
    rate: -1
    bogus: 1
  - {do: heal, after: 1s, at: 2s}
  - 7
"""
BAD_PLACES = [
    "2:8", "3:20", "3:39", "3:48", "3:71", "4:15", "4:19", "5:17", "7:48", "7:65", "7:77", "8:10",
    "9:5", "10:10", "10:30", "10:57", "11:13", "11:41", "12:14", "15:11", "16:12", "17:5", "18:5",
]  # fmt: skip

UNKNOWN_NAMES = """\
steps:
  - {do: create_topic, name: orders}
  - {do: kill, node: [4, broker(7), "controller(9)"]}
  - {do: produce, topic: order, count: 3}
  - {until: "isr(ordesr-0) == [1, 9]"}
  - {do: reassign, partitions: payments-0, replicas: [1, 2]}
  - {until: isr(orders-0) == 2}
"""


def check(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """The exit code of a check, and its lines without the file's name."""
    path.write_text(text)
    code = run(["check", str(path)])
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith(f"{path}:") for line in lines)
    return code, [line.removeprefix(f"{path}:") for line in lines]


def test_every_mistake_is_named_at_once_with_line_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(tmp_path / "bad.yaml", BAD, capsys)
    assert code == 65
    assert [line.partition(": ")[0] for line in lines] == BAD_PLACES
    assert "7:77: step 1: create_topic has no argument 'unclaen'; did you mean unclean?" in lines
    assert "5:17: exercises: unknown rule 'A999'; see minicluster list rules" in lines


def test_nodes_and_topics_that_nothing_creates_are_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(tmp_path / "names.yaml", UNKNOWN_NAMES, capsys)
    assert code == 65 and lines == [
        "3:22: step 2: there is no broker 7; brokers are 1 to 3",
        "3:22: step 2: there is no controller 9; controllers are 101 to 103",
        "3:22: step 2: there is no node 4; nodes are 1 to 3 and 101 to 103",
        "4:26: step 3: there is no topic order then; did you mean orders?",
        "5:13: step 4: there is no node 9; nodes are 1 to 3 and 101 to 103",
        "5:13: step 4: there is no topic ordesr then; did you mean orders?",
        "6:32: step 5: there is no topic payments then; create it before",
    ]


IMPOSSIBLE = """\
cluster: {controllers: 1, brokers: 3}
steps:
  - {do: create_topic, name: orders, partitions: 3, replicas: 5}
  - {do: create_topic, name: bills, configs: {retention: 5, min.insync.replicas: few}}
  - {do: create_topic, name: placed, assignment: [[1, 2, 9]]}
  - {at: 5s, do: kill, node: broker(9)}
  - {at: 2s, do: kill, node: leader(orders-7)}
  - {do: produce, topic: orders, partition: 3}
  - {do: elect, partitions: [orders-0, bills-1]}
  - {do: slow_disk, node: "leader(orders-0)", delay: 5s}
  - {do: set_config, topic: orders, key: retention.mss, value: 5}
  - {expect: isr(orders-3) == 3}
  - {do: cut, src: replicas(orders-0, 1), dst: "broker(1)"}
  - {do: add_partitions, name: orders, total: 4}
  - {expect: isr(orders-3) == 3}
"""


def test_what_can_never_be_right_is_found_with_its_place_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = IMPOSSIBLE.replace('  - {do: cut, src: replicas(orders-0, 1), dst: "broker(1)"}\n', "")
    code, lines = check(tmp_path / "impossible.yaml", text, capsys)
    assert code == 65 and lines == [
        "3:63: step 1: 5 replicas need as many brokers; the cluster has 3",
        "4:58: step 2: unknown topic config 'retention'; did you mean retention.ms?",
        "4:82: step 2: Invalid value few for configuration min.insync.replicas: "
        "Not a number of type INT",
        "5:50: step 3: there is no broker 9; brokers are 1 to 3",
        "6:30: step 4: there is no broker 9; brokers are 1 to 3",
        "7:10: step 5: at 2s is before step 4, which is at 5s or later; order them",
        "7:30: step 5: there is no partition orders-7; those of orders are 0 to 2",
        "8:26: step 6: there is no partition orders-3; those of orders are 0 to 2",
        "9:29: step 7: there is no partition bills-1; those of bills are 0",
        "10:27: step 8: slow_disk would change nothing: brokers do not wait for their disks; "
        "name controllers",
        "11:42: step 9: unknown topic config 'retention.mss'; did you mean retention.ms?",
        "12:14: step 10: there is no partition orders-3; those of orders are 0 to 2",
    ]


DYNAMIC = """\
cluster: {controllers: 1, brokers: 3}
steps:
  - {do: set_config, key: log.retntion.ms, value: 5}
  - {do: set_config, key: retention.ms, value: 5, broker: broker(1)}
  - {do: set_config, key: log.dirs, value: d1, broker: broker(1)}
  - {do: set_config, key: log.retention.ms, value: soon}
  - {do: set_config, key: cordoned.log.dirs, value: d0}
  - {do: set_config, key: log.retention.ms, value: 60000}
  - {do: set_config, key: log.retention.ms, value: null, broker: broker(1)}
  - {do: set_config, key: log.message.downconversion.enable, value: false}
  - {do: set_config, key: leader.replication.throttled.rate, value: 1000, broker: broker(1)}
"""


def test_a_config_that_no_running_broker_takes_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(tmp_path / "dynamic.yaml", DYNAMIC, capsys)
    assert code == 65 and lines == [
        "3:27: step 1: unknown broker config 'log.retntion.ms'; did you mean log.retention.ms?",
        "4:27: step 2: unknown broker config 'retention.ms'; did you mean log.retention.ms?",
        "5:27: step 3: no running broker takes log.dirs; set it in the cluster's config",
        "6:27: step 4: Invalid value soon for configuration log.retention.ms: "
        "Not a number of type LONG",
        "7:27: step 5: cordoned.log.dirs is of single brokers; name the broker",
    ]


REJECTED = """\
cluster: {controllers: 1, brokers: 3}
steps:
  - {do: create_topic, name: orders, partitions: 2}
  - {do: add_partitions, name: orders, total: 2}
  - {do: create_topic, name: orders}
  - {do: create_topic, name: "a b"}
  - {do: create_topic, name: twice, assignment: [[1, 1]]}
  - {do: create_topic, name: uneven, assignment: [[1, 2], [1]]}
  - {do: create_topic, name: nobody, assignment: [[]]}
  - {do: respond, api: Produce, error: REQUEST_TIMED_OUT, versions: 9-3}
  - {do: drop_responses, api: AlterReplicaState}
  - {do: kill, node: client(shop)}
  - {do: bounce, node: [clients, broker(1)]}
  - {do: transform, topic: orders, to: nowhere}
  - {do: remove_voter, node: 101}
  - {do: set_config, key: retention.ms, value: 5, topic: orders, may_fail: true}
  - {do: pause, node: clients, lasting: 1s}
  - {do: add_partitions, name: orders, total: 3}
  - {do: upgrade_kraft_version}
  - {do: remove_voter, node: 101}
  - {do: delete_topic, name: orders, may_fail: true}
  - {do: create_topic, name: orders, may_fail: true}
  - {do: wipe, node: all}
  - {do: create_topic, name: twice}
"""


def test_what_every_cluster_rejects_is_found_before_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(tmp_path / "rejected.yaml", REJECTED, capsys)
    assert code == 65 and lines == [
        "4:47: step 2: orders has 2 partitions already; ask for more",
        "5:30: step 3: there is a topic orders already; step 1 creates it",
        "6:30: step 4: no topic can have this name: 'a b' contains one or more characters other "
        "than ASCII alphanumerics, '.', '_' and '-'",
        "7:49: step 5: a partition has a replica on broker 1 once",
        "8:50: step 6: every partition has as many replicas as the first, which is 2",
        "9:50: step 7: a partition needs a replica",
        "10:69: step 8: versions: Produce has versions 0 to 13, none of 9-3",
        "11:31: step 9: no client sends AlterReplicaState",
        "12:22: step 10: node of kill is of processes of the cluster, which clients are not",
        "13:24: step 11: node of bounce is of processes of the cluster, which clients are not",
        "14:40: step 12: there is no topic nowhere then; create it before",
        "15:10: step 13: voters change with kraft.version 1; upgrade_kraft_version before it",
    ]


ON_ZOOKEEPER = """\
cluster: {mode: zookeeper, brokers: 3}
steps:
  - {do: snapshot, node: controllers}
  - {do: resign}
  - {do: upgrade_kraft_version}
  - {do: unregister, broker: broker(1)}
  - {do: fail_over}
"""


def test_what_only_kraft_has_is_found_in_a_scenario_on_zookeeper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(tmp_path / "zookeeper.yaml", ON_ZOOKEEPER, capsys)
    assert code == 65 and lines == [
        f"{line}:10: step {line - 2}: {name} is of KRaft, and this cluster is on ZooKeeper"
        for line, name in enumerate(
            ("snapshot", "resign", "upgrade_kraft_version", "unregister"), start=3
        )
    ]


DELETED = """\
cluster: {controllers: 1, brokers: 3}
steps:
  - {do: create_topic, name: orders, partitions: 3}
  - {do: create_topic, name: bills}
  - {do: delete_topic, name: [orders, bills]}
  - {do: produce, topic: orders}
  - {expect: fully_in_sync(bills-0)}
  - {do: delete_topic, name: orders, may_fail: true}
  - {do: create_topic, name: orders}
  - {do: produce, topic: orders, partition: 2}
  - {do: delete_topic, name: orders, may_fail: true}
  - {do: produce, topic: orders}
"""


def test_a_topic_that_a_step_has_deleted_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until another one creates it, with its own number of partitions."""
    code, lines = check(tmp_path / "deleted.yaml", DELETED, capsys)
    assert code == 65 and lines == [
        "6:26: step 4: there is no topic orders then; step 3 deleted it",
        "7:14: step 5: there is no topic bills then; step 3 deleted it",
        "10:26: step 8: there is no partition orders-2; those of orders are 0",
    ]


NOBODY = """cluster: {brokers: 3, controllers: 3}
steps:
  - {do: create_topic, name: orders, partitions: 3, replicas: 3}
  - {do: kill, node: rack(5)}
  - {do: kill, node: rack(2)}
  - {do: cut, src: 1, dst: 1}
  - {do: cut, src: [1, 2], dst: 1}
  - {do: kill, node: minority(9)}
  - {do: kill, node: minority_third(brokers)}
  - {do: kill, node: minority(brokers)}
  - {until: "fenced(rack(7))"}
  - {do: kill, node: []}
  - {do: kill, node: one(1)}
  - {do: cut, src: broker(2), dst: "[2, broker(2)]"}
"""


def test_a_selector_that_can_select_nobody_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    no_racks = "no broker has a rack; give racks to all with config: broker.rack: a,b,c"
    text = NOBODY.replace("  - {do: kill, node: []}\n", "")
    code, lines = check(tmp_path / "nobody.yaml", text, capsys)
    assert code == 65 and lines == [
        f"4:22: step 2: {no_racks}",
        "4:22: step 2: there is no node 5; nodes are 1 to 3 and 101 to 103",
        f"5:22: step 3: {no_racks}",
        "6:28: step 4: node 1 has no network between itself and itself",
        "8:22: step 6: minority of 1 is nobody",
        "8:22: step 6: there is no node 9; nodes are 1 to 3 and 101 to 103",
        "9:22: step 7: minority_third of 3 is nobody",
        f"11:13: step 9: {no_racks}",
        "11:13: step 9: there is no node 7; nodes are 1 to 3 and 101 to 103",
        "13:36: step 11: node 2 has no network between itself and itself",
    ]
    _, lines = check(tmp_path / "empty.yaml", NOBODY, capsys)
    assert "12:22: step 10: node: an empty list names no node" in lines
    racks = text.replace("3}\n", "3, config: {broker.rack: 'a,b'}}\n", 1).replace("(2)", "(101)")
    _, lines = check(tmp_path / "racks.yaml", racks, capsys)
    assert not [line for line in lines if "no broker has a rack" in line]
    assert "5:22: step 3: node 101 is a controller, and only brokers have racks" in lines


NEVER = """cluster: {brokers: 3, controllers: 3}
steps:
  - {do: create_topic, name: orders, partitions: 1, replicas: 2}
  - {do: create_topic, name: placed, assignment: [[1, 2, 3], [2, 3, 1]]}
"""
SOME_REPLICAS = "it has 2 replicas with its leader's"
OF_BROKERS = "brokers are 1 to 3"


@pytest.mark.parametrize(
    ("step", "mistake"),
    [
        ('{do: kill, node: "follower(orders-0, n=9)"}',
         f"22: orders-0 has no follower n=9; {SOME_REPLICAS}"),
        ('{do: kill, node: "follower(orders-0, n=2)"}',
         f"22: orders-0 has no follower n=2; {SOME_REPLICAS}"),
        ('{do: kill, node: "follower(placed-0, n=3)"}',
         "22: placed-0 has no follower n=3; it has 3 replicas with its leader's"),
        ('{do: kill, node: "follower(orders-0, n=-1)"}',
         f"22: orders-0 has no follower n=-1; {SOME_REPLICAS}"),
        ("{until: fenced(101)}",
         f"13: fenced() is of brokers, which node 101 is not; {OF_BROKERS}"),
        ("{until: fenced(9)}", "13: there is no node 9; nodes are 1 to 3 and 101 to 103"),
        ('{expect: "unfenced(all)"}',
         f"14: unfenced() is of brokers, which nodes 101, 102, 103 are not; {OF_BROKERS}"),
        ("{until: in_controlled_shutdown(active_controller())}",
         "13: in_controlled_shutdown() is of brokers, which nodes 101, 102, 103 are not; "
         f"{OF_BROKERS}"),
        ("{until: leader(orders-0) == 9}",
         "13: leader(orders-0) is never 9; it is one of 1 to 3"),
        ("{until: leader(orders-0) == controller(0)}",
         "13: leader(orders-0) is never controller(0); it is one of 1 to 3"),
        ("{until: 101 in isr(orders-0)}",
         "13: 101 is never in isr(orders-0); it is one of 1 to 3"),
        ("{until: active_controller() == 2}",
         "13: active_controller() is never 2; it is one of 101 to 103"),
        ("{until: isr(orders-0) == 3}",
         "13: isr(orders-0) never has == 3 nodes; it has 2 at most"),
        ("{until: isr(placed-1) > 3}", "13: isr(placed-1) never has > 3 nodes; it has 3 at most"),
        ("{until: replicas(orders-0) >= 3}",
         "13: replicas(orders-0) never has >= 3 nodes; it has 2 at most"),
        ("{do: resign, node: 1}",
         "24: node of resign is of controllers, which node 1 is not; controllers are 101 to 103"),
        ("{do: snapshot, node: leader(orders-0)}",
         "26: node of snapshot is of controllers, which nodes 1, 2, 3 are not; controllers are "
         "101 to 103"),
        ("{do: publish_delay, broker: 102, delay: 1s}",
         f"33: broker of publish_delay is of brokers, which node 102 is not; {OF_BROKERS}"),
        ("{do: reassign, partitions: orders-0, replicas: [1, 103]}",
         f"52: replicas of reassign is of brokers, which node 103 is not; {OF_BROKERS}"),
        ("{do: produce, topic: orders, to: active_controller()}",
         f"38: to of produce is of brokers, which nodes 101, 102, 103 are not; {OF_BROKERS}"),
        ("{do: fail_dir, broker: 1, directory: 1}",
         "42: each broker has 1 log directory, counted from 0; not 1"),
        ("{until: leader(__consumer_offsets-50) == 1}",
         "13: there is no partition __consumer_offsets-50; those of __consumer_offsets are "
         "0 to 49"),
    ],
)  # fmt: skip
def test_a_step_that_no_cluster_of_this_shape_can_satisfy_is_found(
    step: str, mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    column, _, text = mistake.partition(": ")
    code, lines = check(tmp_path / "never.yaml", f"{NEVER}  - {step}\n", capsys)
    assert code == 65 and lines == [f"5:{column}: step 3: {text}"]


@pytest.mark.parametrize(
    "step",
    [
        '{do: kill, node: "follower(orders-0, n=1)"}',  # where nobody leads
        "{until: leader(orders-0) == none}",
        "{until: leader(orders-0) == -1}",
        "{until: leader(orders-0) != 9}",
        "{until: isr(orders-0) != 3}",
        "{until: isr(orders-0) == replicas(orders-0)}",
        "{until: leader_epoch(orders-0) >= 9}",
        "{until: one(brokers) in isr(orders-0)}",
        "{until: fenced(one(all))}",
        "{do: resign, node: active_controller()}",
        "{do: publish_delay, broker: 102, delay: 1s, may_fail: true}",
        "{until: leader(__consumer_offsets-49) == 1}",
    ],
)
def test_a_step_that_may_come_true_is_none_of_them(
    step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = check(tmp_path / "some.yaml", f"{NEVER}  - {step}\n", capsys)
    assert not [line for line in lines if "may_fail" not in line]


def test_what_other_steps_may_change_is_not_judged_by_the_creation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        f"{NEVER}  - {{do: reassign, partitions: orders-0, replicas: [1, 2, 3]}}\n"
        "  - {until: isr(orders-0) == 3}\n  - {expect: isr(orders-0) <= 4}\n"
        "  - {until: isr(orders-0) == 4}\n"
    )
    _, lines = check(tmp_path / "grown.yaml", text, capsys)
    assert lines == ["8:13: step 6: isr(orders-0) never has == 4 nodes; it has 3 at most"]


def test_a_condition_that_yaml_took_apart_needs_quotes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "steps:\n  - {until: follower(orders-0, n=1) == 1}\n  - {expect: 1 in f(a, 2) or 3 == x}\n"
    )
    _, lines = check(tmp_path / "apart.yaml", text, capsys)
    hint = "a value with a bracket or a comma needs quotes"
    assert lines == [
        f'2:13: step 1: {hint}; write until: "follower(orders-0, n=1) == 1"',
        f'3:14: step 2: {hint}; write expect: "1 in f(a, 2) or 3 == x"',
    ]


def test_a_selector_that_yaml_took_apart_is_one_mistake_with_its_quotes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(tmp_path / "comma.yaml", IMPOSSIBLE, capsys)
    assert code == 65 and [line for line in lines if line.startswith("13:")] == [
        "13:20: step 11: a value with a bracket or a comma needs quotes; "
        'write src: "replicas(orders-0, 1)"'
    ]


def test_a_step_that_may_fail_may_ask_for_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "steps:\n  - {do: create_topic, name: orders, replicas: 5, may_fail: true}\n"
        "  - {do: slow_disk, node: all, delay: 1s}\n"
        "  - {at: 1s, do: heal}\n  - {after: 1s, do: heal}\n  - {at: 2s, do: heal}\n"
    )
    assert check(tmp_path / "good.yaml", text, capsys) == (0, [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("steps:\n  - do: heal\n\t  at: 5s", "3:1: not YAML: a tab; YAML is indented with"),
        ("steps:\n\t- {do: heal}", "2:1: not YAML: a tab; YAML is indented with spaces"),
        ("steps: [", "1:9: not YAML"),
        ("steps: []", "1:8: the list of steps is missing or empty"),
        ("[1, 2]", "1:1: a scenario is a mapping"),
        ("cluster: {controllers: 1, config: {initial.controllers: 3}}\nsteps: [{do: heal}]",
         " initial.controllers: the cluster has 1 controller"),
    ],
)  # fmt: skip
def test_a_mistake_of_the_whole_is_one_line(
    text: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, [found] = check(tmp_path / "whole.yaml", text, capsys)
    assert code == 65 and found.startswith(line)


NOT_YAML = """faults: [Z99]
cluster: {brokers: [3}
steps:
  - {do: create_topic, name: orders, assignment: [[1, 2, 3]}
  - {do: kil, node: 1}
  - do: kill
    node: [1, 2
  - {until: fully(orders-0)}
"""


def test_a_bracket_without_its_end_hides_no_other_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(tmp_path / "bracket.yaml", NOT_YAML, capsys)
    assert code == 65
    assert [line.partition("(")[0][:26] for line in lines] == [
        "1:10: faults: 'Z99' is not",
        "2:22: not YAML: expected '",
        "4:60: not YAML: expected '",
        "5:10: step 2: unknown acti",
        "8:5: not YAML: expected ',",
        "8:13: step 4: unknown sele",
    ]


@pytest.mark.parametrize("text", ["steps: [", "- [", "a: {", "steps:\n  - {do: heal", "[\n" * 9])
def test_what_cannot_be_read_at_all_is_one_mistake(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, [line, *more] = check(tmp_path / "open.yaml", text, capsys)
    assert code == 65 and ": not YAML: " in line
    assert not more or "the list of steps is missing" in more[0]


def test_good_files_are_good(capsys: pytest.CaptureFixture[str]) -> None:
    played = [*EXAMPLES, *(path for room in ("zoo", "scenario") for path in stories_of(room))]
    assert run(["check", *map(str, played)]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines() == [f"{path}: good" for path in played]


def stories_of(room: str) -> list[Path]:
    """The scenario files of a room of tests, all of which are played."""
    return sorted((Path(__file__).parents[1] / room).glob("*.yaml"))


def fits(value: Any, schema: Any) -> bool:
    """True if a value fits a schema: as much of JSON Schema as ours has."""
    types = {
        "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
        "integer": int, "number": (int, float),
    }  # fmt: skip
    if "oneOf" in schema:
        return sum(fits(value, one) for one in schema["oneOf"]) == 1
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, bool) and "boolean" not in wanted:
        return False
    if not isinstance(value, tuple(types[one] for one in wanted)):  # type: ignore[arg-type]
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", {})
        return all(name in value for name in schema.get("required", ())) and all(
            fits(item, known[name]) if name in known else more is not False and fits(item, more)
            for name, item in value.items()
        )
    if isinstance(value, list):
        enough = len(value) >= schema.get("minItems", 0)
        return enough and all(fits(item, schema["items"]) for item in value)
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, int | float):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        return bool(low <= value <= high and value != schema.get("exclusiveMinimum"))
    return True


def test_the_schema_takes_what_the_reader_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "--output", str(tmp_path / "schema.json")]) == 0
    schema = json.loads((tmp_path / "schema.json").read_text())
    assert run(["schema"]) == 0 and json.loads(capsys.readouterr().out) == schema
    for path in EXAMPLES:
        written = load_scenario(path).to_dict()
        assert fits(written, schema), path
        for slip in ({"color": "blue"}, {"steps": []}, {"steps": [{"do": "kil"}]}):
            assert not fits({**written, **slip}, schema)
    named = {one["properties"]["do"]["const"] for one in step_schemas() if "do" in one["required"]}
    assert named == set(ACTIONS)


def step_schemas() -> list[Any]:
    found: list[Any] = scenario_schema()["properties"]["steps"]["items"]["oneOf"]
    return found


@pytest.mark.parametrize(
    ("what", "row"),
    [
        ("actions", r"^bounce +Kill nodes and start them again after a while\. +node \[down\]"),
        ("selectors", r"^leader\(orders-0\) +the partition's leader"),
        ("rules", r"^A3 +log +Only active replicas enter an ISR"),
        ("faults", r"^Z01 +the controller accepts fenced"),
        ("configs", r"^min\.insync\.replicas +broker +int +1"),
    ],
)
def test_what_a_scenario_can_name_is_listed(
    what: str, row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", what]) == 0
    text = capsys.readouterr().out
    assert re.search(row, text, re.M)
    assert run(["list", what, "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(text.splitlines())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_MINICLUSTER_COMPLETE={shell}_complete" in capsys.readouterr().out


SHORT = """\
name: short
cluster: {{controllers: 1, brokers: 1, seed: 3}}
faults: {faults}
steps:
  - {{do: create_topic, name: orders, replicas: 1}}
  - {{expect: "{condition}"}}
"""


def short(path: Path, condition: str = "isr(orders-0) == 1", faults: str = "[]") -> str:
    path.write_text(SHORT.format(condition=condition, faults=faults))
    return str(path)


@pytest.mark.parametrize(
    ("condition", "faults", "verdict", "code"),
    [
        ("isr(orders-0) == 1", "[]", "valid", 0),
        ("isr(orders-0) == 2", "[]", "invalid", 1),
        ("isr(orders-0) == 1", "[Z41]", "unknown", 2),
    ],
)
def test_a_play_without_spark_has_a_verdict_of_its_own(
    condition: str, faults: str, verdict: str, code: int, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    runs = ["--no-verify", "--runs", str(tmp_path / "runs")]
    story = short(tmp_path / "story.yaml", condition, faults)
    assert run(["run", story, *runs]) == code
    assert f"{verdict.upper()} by the online rules alone" in capsys.readouterr().out
    assert run(["run", story, *runs, "--format", "json"]) == code
    printed = json.loads(capsys.readouterr().out)
    assert printed["verdict"] == verdict and printed["judged_in_spark"] is False
    header = json.loads((Path(printed["run"]) / "run.json").read_text())
    assert header["failure"] == printed["failure"]
    assert (header["failure"] is None) == (verdict != "invalid")


def test_the_run_of_another_scenario_of_the_same_name_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story, runs = tmp_path / "story.yaml", tmp_path / "runs"
    for condition in ("isr(orders-0) == 1", "isr(orders-0) == 1", "leader(orders-0) == broker(1)"):
        assert run(["run", short(story, condition), "--no-verify", "--runs", str(runs)]) == 0
    assert sorted(path.name for path in runs.iterdir()) == ["short-3", "short-3-2"]
    assert f"{runs / 'short-3'} holds the run of another scenario" in capsys.readouterr().err
    of_first = load_scenario(runs / "short-3" / "scenario.yaml")
    assert of_first == parse_scenario(to_yaml(of_first.to_dict()))
    assert "isr(orders-0) == 1" in (runs / "short-3" / "scenario.yaml").read_text()


@pytest.mark.parametrize("command", ["run", "chaos"])
def test_runs_that_cannot_be_written_are_refused_before_the_play(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = short(tmp_path / "story.yaml")
    words = [story] if command == "run" else ["--seeds", "1"]
    blocked = tmp_path / "file" / "runs"
    (tmp_path / "file").write_text("no folder")
    assert run([command, *words, "--runs", str(blocked)]) == 74
    err = capsys.readouterr().err
    assert "create_topic" not in err and str(blocked) in err
    assert len(err.splitlines()) == 1


def test_a_folder_of_runs_is_read_as_its_runs(tmp_path: Path) -> None:
    from minicluster.verify.evidence.reading import read_runs

    runs = tmp_path / "runs"
    for seed in ("1", "2"):
        story = short(tmp_path / "story.yaml")
        assert run(["run", story, "--no-verify", "--seed", seed, "--runs", str(runs)]) == 0
    assert [one.name for one in read_runs([runs])] == ["short-1", "short-2"]
    assert [one.name for one in read_runs([runs / "short-1"])] == ["short-1"]
