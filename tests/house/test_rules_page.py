"""Every field of ``Rules`` is described, and shown from either side by a test that exists."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

import pytest

from docs.generate.rules_page import described
from docs.generate.rules_shown import SHOWN_BY
from minicluster.errors import UserError
from minicluster.metadata.bootstrap import activation_records, bootstrap_records
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol.records import ConfigRecord
from minicluster.rules import FailedReplicas, Rules, UncleanRecovery
from tests.house.references import is_there
from tests.house.sources import module_of, nodes_of, room_of, sources, tree_of

FIELDS = [f.name for f in fields(Rules) if f.name != "name"]


def test_every_field_is_described() -> None:
    found = list(described())
    assert [field.name for field in found] == FIELDS
    assert [field.name for field in found if not field.text or not field.part] == []


def test_every_field_has_a_test_and_every_test_is_there() -> None:
    assert sorted(SHOWN_BY) == sorted(FIELDS), "docs/generate/rules_shown.py"
    missing = [r for shown in SHOWN_BY.values() for r in shown if not is_there(r)]
    assert missing == []


def test_bugs_are_off_but_those_that_others_can_see() -> None:
    on = [f.name for f in fields(Rules) if f.metadata.get("bug") and getattr(Rules(), f.name)]
    assert on == [
        "fenced_broker_holds_session",
        "amend_forgets_cordoned_dirs",
        "fenced_broker_is_fenced_again",
        "replica_in_failed_dir_may_join",
        "unregistered_broker_stays_in_elr",
    ]
    assert list(Rules.zoo()) and set(Rules.zoo()) == {"Z07", *(f"Z{n}" for n in range(52, 62))}


def test_a_name_may_set_fields() -> None:
    rules = Rules.named(
        "kafka-3.9 failed_replicas_reported_by=alter_replica_state "
        "unclean_leader_recovers=reported clear_elr_skips_index=true config_value_length_max=9"
    )
    assert rules.failed_replicas_reported_by is FailedReplicas.ALTER_REPLICA_STATE
    assert rules.unclean_leader_recovers is UncleanRecovery.REPORTED
    assert rules.clear_elr_skips_index and rules.config_value_length_max == 9
    assert rules.metadata_version_latest == Rules.KAFKA_3_9.metadata_version_latest
    assert Rules.named(rules.name) == rules


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kafka-2.8", "choose one of kafka-4.3, kafka-3.9"),
        ("", "choose one of kafka-4.3, kafka-3.9"),
        ("kafka-4.3 nope=true", "'nope=true' sets no field"),
        ("kafka-4.3 name=x", "'name=x' sets no field"),
        ("kafka-4.3 tasks_are_periodic", "sets no field"),
        ("kafka-4.3 tasks_are_periodic=1", "sets no field"),
        ("kafka-4.3 isr_changes_by=x", "isr_changes_by is one of alter_partition, "),
    ],
)
def test_a_slip_in_a_name_is_refused_in_one_line(name: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected) as error:
        Rules.named(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, Rules.KAFKA_3_9], ids=lambda r: r.name)
def test_elr_starts_with_the_clusters_minimum_in_4_x_only(rules: Rules) -> None:
    records = bootstrap_records(MetadataVersion.V4_0_IV1, {"eligible.leader.replicas.version": 1})
    decision = activation_records(
        MetadataImage.EMPTY,
        bootstrap=records,
        log_is_empty=True,
        transaction_is_open=False,
        rules=rules,
    )
    configs = [r.record for r in decision.records if isinstance(r.record, ConfigRecord)]
    assert len(configs) == (1 if rules is Rules.KAFKA_4_3 else 0)


def test_every_field_is_read_by_code_that_a_cluster_runs() -> None:
    """A field that only a function reads which no other code calls does nothing in a cluster."""
    files = tuple(sources("minicluster", "actors"))
    imported, attributes = set[str](), set[str]()
    for path in files:
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Attribute):
                attributes.add(node.attr)
    read = set[str]()
    for path in files:
        if path.name == "rules.py" or room_of(path) == "zoo":
            continue
        module = module_of(path)
        names = Counter(node.id for node in nodes_of(path) if isinstance(node, ast.Name))
        for function in functions_of(tree_of(path)):
            name, inner = function.name, tuple(ast.walk(function))
            own = sum(isinstance(node, ast.Name) and node.id == name for node in inner)
            used = names[name] > own or name in attributes or f"{module}.{name}" in imported
            if used or name.startswith("__"):
                found = {node.attr for node in inner if isinstance(node, ast.Attribute)}
                read |= found & set(FIELDS)
    assert sorted(set(FIELDS) - read) == []


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a module, without those inside them."""
    for node in tree.body:
        for inner in node.body if isinstance(node, ast.ClassDef) else (node,):
            if isinstance(inner, ast.FunctionDef):
                yield inner
