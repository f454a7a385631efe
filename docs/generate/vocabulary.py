"""The pages of the scenario language and of the command line, from what checks and parses them."""

from __future__ import annotations

import re

import click

from docs.generate.pages import table
from minicluster.cli import app
from minicluster.faults import Faults
from minicluster.rules import Rules
from minicluster.scenario.actions.action import Argument, arguments_of
from minicluster.scenario.actions.arguments import KINDS
from minicluster.scenario.actions.record_contents import HEADERS, KEYS, TIMESTAMPS, VALUES
from minicluster.scenario.functions import TEXTS
from minicluster.scenario.vocabulary import ACTIONS


def scenario_parts() -> dict[str, str]:
    """The generated parts of docs/reference/vocabulary.md."""
    selectors = [(f"`{form}`", text) for form, text in TEXTS.items()]
    return {
        "actions": _actions(),
        "kinds": table(("argument", "what it holds"), _kinds()),
        "selectors": table(("selector", "meaning"), selectors),
        "faults": _faults(),
    }


def _actions() -> str:
    rows = []
    for name, action in ACTIONS.items():
        given = [_argument(name, argument) for name, argument in arguments_of(action).items()]
        [text] = re.findall(r"\A(.+)\n?", action.__doc__ or "")
        rows.append((f"`{name}`", text, "; ".join(given)))
    return table(("action", "what it does", "arguments"), rows)


def _kinds() -> list[tuple[str, str]]:
    kinds = (*KINDS, VALUES, KEYS, HEADERS, TIMESTAMPS)
    return [(kind.name, kind.text) for kind in kinds]


def _argument(name: str, argument: Argument) -> str:
    takes = argument.kind.name
    if takes == "count":
        takes = argument.kind.text.removeprefix("a whole number ")
    if argument.required:
        return f"**`{name}`**: {takes}"
    if argument.default is None:
        return f"`{name}`: {takes}"
    default = argument.kind.written(argument.default)
    shown = str(default).lower() if isinstance(default, bool) else default
    return f"`{name}`: {takes} (`{shown}`)"


def _faults() -> str:
    fields = Faults.__dataclass_fields__
    rows = [(zoo, fields[name].metadata["text"]) for zoo, name in Faults.switches().items()]
    bugs = [(zoo, f"a bug of Kafka's own: `Rules.{name}`") for zoo, name in Rules.zoo().items()]
    return table(("id", "what goes wrong"), sorted([*rows, *bugs]))


def cli_parts() -> dict[str, str]:
    """The generated parts of docs/reference/cli.md: what ``--help`` prints."""
    found = {"minicluster": _help(app, "minicluster")}
    for name, command in app.commands.items():
        if not command.hidden:
            found[name] = _help(command, f"minicluster {name}")
    return found


def _help(command: click.Command, name: str) -> str:
    settings = dict(command.context_settings) or {"help_option_names": ["-h", "--help"]}
    context = click.Context(command, info_name=name, terminal_width=90, **settings)
    return "```\n" + command.get_help(context).rstrip() + "\n```"
