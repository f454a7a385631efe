"""Each config of Kafka acts here, or is named with the reason why it does not."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.cli.main import run
from minicluster.configs.definitions import TOPIC_SYNONYMS, broker_configs, topic_configs
from minicluster.configs.without_effect import reason_without_effect
from minicluster.errors import NoEffectWarning
from tests.house.sources import ROOT, nodes_of, sources

# These name configs in order to pass them on.
LISTS = (
    "actors/cluster/client_configs.py",
    "actors/cluster/topic_configs.py",
    "actors/export",
    "minicluster/configs",
)
DESCRIBED = {"controller.quorum.bootstrap.servers"}
"""What a node's own description has, whatever is set."""
BY_GROUP = ("group.consumer.", "consumer.")  # read as the broker's or a group's (GroupConfig)


def names_in_code() -> set[str]:
    """Each text in the code of the product, but for lists of configs."""
    return {
        node.value
        for path in sources()
        if not str(path.relative_to(ROOT)).startswith(LISTS)
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_a_config_is_read_somewhere_or_has_a_reason() -> None:
    read = names_in_code()
    acting = {name for name in TOPIC_SYNONYMS if reason_without_effect(name) is None}
    read |= {synonym for name in acting for synonym in TOPIC_SYNONYMS[name]}
    names = {key.name for table in (broker_configs(), topic_configs()) for key in table}
    unexplained = {
        name
        for name in names - read
        if not name.startswith(BY_GROUP) and not reason_without_effect(name)
    }
    assert unexplained == set()
    assert {name for name in names & read if reason_without_effect(name)} == DESCRIBED


def test_a_cluster_warns_of_a_setting_that_changes_nothing() -> None:
    with pytest.warns(NoEffectWarning, match="metric.reporters has no effect here: no plugin"):
        MiniCluster(seed=1, config={"metric.reporters": "org.example.Nobody"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MiniCluster(seed=1, config={"log.retention.ms": 60_000, "replica.lag.time.max.ms": "10s"})


@pytest.mark.filterwarnings("default:config. .* has no effect here")
def test_the_command_line_warns_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "name: quiet\ncluster: {brokers: 1, controllers: 1, seed: 1, config: {num.io.threads: 3}}\n"
        "steps:\n  - {do: create_topic, name: orders, replicas: 1}\n"
    )
    run(["run", str(scenario), "--no-verify", "--runs", str(tmp_path / "runs")])
    [line] = [line for line in capsys.readouterr().err.splitlines() if "num.io.threads" in line]
    reason = "actors have no pools of threads"
    assert line == f"minicluster: config: num.io.threads has no effect here: {reason}"


def test_the_list_of_configs_has_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "configs"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "no effect: no quota of clients is enforced" in rows["quota.window.num"]
    assert "no effect" not in rows["min.insync.replicas"]
