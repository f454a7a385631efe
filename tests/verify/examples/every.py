"""Every example and near miss, in the order of the files of rules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from minicluster.verify.rules.every import MODULES
from tests.verify.examples.example import Example, examples_in


def home_of(module: str) -> str:
    """The examples of the rules in ``rules/partitions.py`` are in ``examples/partitions.py``."""
    return f"tests.verify.examples.{module.rpartition('.')[2]}"


EXAMPLES: tuple[Example[Any], ...] = tuple(
    example
    for module in MODULES
    for example in examples_in(import_module(home_of(module.__name__)))
)
