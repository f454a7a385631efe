"""The examples of the rules, by rule: those that build logs, runs, and logs of ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest

from minicluster.verify.rules.every import RULES
from tests.verify.examples.every import EXAMPLES
from tests.verify.examples.example import Example, examples_of
from tests.verify.handwritten.log import LogBuilder
from tests.verify.handwritten.run import RunBuilder
from tests.verify.handwritten.znodes import ZnodeRun

Case = Example[Any]
Cases = Mapping[str, tuple[Case, ...]]
"""Examples by the rule that they break or nearly break."""


def _built_as(kind: type, *, is_broken: bool) -> Cases:
    every = {
        rule.id: tuple(
            example
            for example in examples_of(rule, EXAMPLES)
            if example.is_broken is is_broken and get_type_hints(example.build)["return"] is kind
        )
        for rule in RULES
    }
    return {rule: examples for rule, examples in every.items() if examples}


LOGS_BAD, LOGS_NEAR = (_built_as(LogBuilder, is_broken=bad) for bad in (True, False))
RUNS_BAD, RUNS_NEAR = (_built_as(RunBuilder, is_broken=bad) for bad in (True, False))
ZNODES_BAD, ZNODES_NEAR = (_built_as(ZnodeRun, is_broken=bad) for bad in (True, False))
BY_NAME = {example.name: example for example in EXAMPLES}


def by_name(*tables: Cases) -> dict[str, Case]:
    """The examples of some tables, each once."""
    return {
        example.name: example
        for table in tables
        for examples in table.values()
        for example in examples
    }


def each(*tables: Cases) -> list[Any]:
    """Each rule with each of its examples, for a test of one."""
    return [
        pytest.param(rule, example, id=f"{rule}-{example.name}")
        for table in tables
        for rule, examples in table.items()
        for example in examples
    ]
