"""Every example and near miss, in the order of the files of rules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from minicluster.verify.rules.every import MODULES
from tests.verify.examples.example import Example, examples_in


def home_of(module: str) -> str:
    """The examples of the rules in ``rules/partitions.py`` are in ``examples/partitions.py``; those
    of some folders are in one file."""
    folder, name = module.split(".")[-2:]
    return f"tests.verify.examples.{folder if folder in ('programs', 'producers') else name}"


EXAMPLES: tuple[Example[Any], ...] = tuple(
    example
    for home in dict.fromkeys(home_of(module.__name__) for module in MODULES)
    for example in examples_in(import_module(home))
)
