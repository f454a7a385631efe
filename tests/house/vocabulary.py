"""The pages of the scenario language and of the command line, from what checks and parses them."""

from __future__ import annotations

import click

from minicluster import cli
from minicluster.faults import Faults
from minicluster.rules import Rules
from minicluster.scenario.selectors import TEXTS
from minicluster.scenario.vocabulary import ACTIONS, Argument, Kind
from tests.house.pages import table


def scenario_parts() -> dict[str, str]:
    """The generated parts of docs/scenarios.md."""
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
        given = "; ".join(_argument(name, argument) for name, argument in action.arguments.items())
        rows.append((f"`{name}`", action.text, given))
    return table(("action", "what it does", "arguments"), rows)


def _kinds() -> list[tuple[str, str]]:
    return [(kind.name.lower(), kind.value) for kind in Kind if kind is not Kind.CHOICE]


def _argument(name: str, argument: Argument) -> str:
    if argument.kind is Kind.CHOICE:
        takes = " or ".join(f"`{choice}`" for choice in argument.choices)
    else:
        takes = argument.kind.name.lower()
    if argument.required:
        return f"**`{name}`**: {takes}"
    default = argument.default
    shown = str(default).lower() if isinstance(default, bool) else default
    return f"`{name}`: {takes}" + ("" if default is None else f" (`{shown}`)")


def _faults() -> str:
    fields = Faults.__dataclass_fields__
    rows = [(zoo, fields[name].metadata["text"]) for zoo, name in Faults.switches().items()]
    bugs = [(zoo, f"a bug of Kafka's own: `Rules.{name}`") for zoo, name in Rules.zoo().items()]
    return table(("id", "what goes wrong"), sorted([*rows, *bugs]))


def cli_parts() -> dict[str, str]:
    """The generated parts of docs/cli.md: what ``--help`` prints."""
    found = {"minicluster": _help(cli.app, "minicluster")}
    for name, command in cli.app.commands.items():
        if not command.hidden:
            found[name] = _help(command, f"minicluster {name}")
    return found


def _help(command: click.Command, name: str) -> str:
    settings = dict(command.context_settings) or {"help_option_names": ["-h", "--help"]}
    context = click.Context(command, info_name=name, terminal_width=90, **settings)  # type: ignore[arg-type]
    return "```\n" + command.get_help(context).rstrip() + "\n```"
