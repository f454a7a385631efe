"""Every example and near miss, in the order of the files of rules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from minicluster.verify.rules.every import MODULES
from minicluster.verify.rules.example import Example, examples_in

# The order of the rules stands in one place; the examples of each file are in one of its name.
EXAMPLES: tuple[Example[Any], ...] = tuple(
    example
    for module in MODULES
    for example in examples_in(
        import_module(module.__name__.replace(".rules.", ".rules.examples."))
    )
)
