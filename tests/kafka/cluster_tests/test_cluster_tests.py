"""Apache Kafka's own cluster tests hold on a cluster of ours, but for those that say why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kafka.cluster_tests.playing import FAILS, HOLDS, Played, count_by_outcome, play
from tests.kafka.jars import tests_missing

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.skipif(tests_missing() is not None, reason=tests_missing() or ""),
]

CLASSES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("classes.yaml").read_text(encoding="utf-8")
)
WITHIN_S = 1_800.0


def method(test: Played) -> str:
    """The method of a test, without what it was repeated with."""
    return test.test.partition(".")[2].partition("(")[0]


def test_a_class_that_no_jar_has_is_named(tmp_path: Path) -> None:
    """JUnit finds no test then, and only its log says why."""
    with pytest.raises(LookupError, match=r"kafka\.server\.NopeTest: no test jar in"):
        play(["kafka.server.NopeTest"], tmp_path, within_s=WITHIN_S)


@pytest.mark.parametrize("name", CLASSES)
def test_the_class_holds(name: str, tmp_path: Path) -> None:
    tests = play([name], tmp_path, within_s=WITHIN_S)
    print(*tests, sep="\n")  # shown where a test failed
    tests = [test for test in tests if method(test) not in CLASSES[name].get("varies", {})]
    failed = {method(test) for test in tests if test.outcome == FAILS}
    assert failed == set(CLASSES[name].get("fails", {}))
    assert count_by_outcome(tests)[HOLDS] == CLASSES[name]["holds"]
