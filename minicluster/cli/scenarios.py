"""Commands about scenario files: check one, a schema for editors, lists, completion of a shell."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class
from rich.table import Table

from minicluster.cli.exit_codes import EXIT_CONTENT, EXIT_FILES
from minicluster.cli.options import JSON, TEXT, format_option, path_type
from minicluster.cli.reports import write_report
from minicluster.cli.terminal import complain, out, print_line, print_lines
from minicluster.errors import UserError, instead

Row = tuple[str, ...]
_CONFIGS = "see minicluster list configs"
SHELLS = ("bash", "zsh", "fish")


@click.command("check")
@click.argument("files", type=path_type, nargs=-1, required=True, metavar="FILE...")
def check(files: tuple[Path, ...]) -> int:
    """Look for every mistake in scenario files; play nothing.

    Each mistake is one line: file, line, column, step, what is wrong and what to write.
    """
    codes = {0}
    for path in files:
        try:
            complaints = _mistakes(path)
            codes.add(EXIT_CONTENT if complaints else 0)
        except UserError as error:  # no file, or no text: the others are looked at
            complaints = [str(error)]
            codes.add(error.exit_code)
        for line in complaints:
            complain(line)
        if not complaints:
            print_line(f"{path}: good")
    return EXIT_CONTENT if EXIT_CONTENT in codes else max(codes)


def _mistakes(path: Path) -> list[str]:
    from minicluster.actors.nodes.config import ClusterConfig
    from minicluster.actors.play.player import cluster_of, run_name
    from minicluster.scenario.checks.impossible_steps import OtherChecks
    from minicluster.scenario.checks.whole_file import Mistake, mistakes
    from minicluster.scenario.reading import scenario_text
    from minicluster.verify.rules.every import BY_ID

    other_checks = OtherChecks(
        BY_ID, lambda name, value: ClusterConfig().with_settings({name: value}), _topic_config
    )
    scenario, seen = mistakes(scenario_text(path), str(path), path.stem, other_checks)
    if scenario is not None and not seen:
        try:  # what only the whole shows
            run_name(scenario)
            cluster_of(scenario)
        except UserError as error:
            seen.append(Mistake(0, 0, str(error)))
    return [
        f"{path}:{mistake.line}:{mistake.column}: {mistake.text}"
        if mistake.line
        else f"{path}: {mistake.text}"
        for mistake in seen
    ]


def _topic_config(name: str, value: Any) -> None:
    """Look at a config of a topic.

    Errors:  UserError for one that does not exist, and for a value that it cannot have.
    """
    from minicluster.configs.config_def import InvalidConfig
    from minicluster.configs.definitions import topic_configs

    keys = topic_configs().keys
    if name not in keys:
        raise UserError(f"unknown topic config {name!r}; {instead(name, keys, _CONFIGS)}")
    if value is not None:
        try:
            keys[name].parse(str(value).lower() if isinstance(value, bool) else str(value))
        except InvalidConfig as error:
            raise UserError(str(error)) from None


@click.command("schema")
@click.option("--output", type=path_type, help="File to write.  [default: standard output]")
def schema(output: Path | None) -> int:
    """Write the JSON Schema of scenario files, by which editors complete and check.

    \b
      minicluster schema --output scenario.schema.json
      # yaml-language-server: $schema=scenario.schema.json    (first line of a scenario)
    """
    from minicluster.scenario.schema import scenario_schema

    text = json.dumps(scenario_schema(), indent=1)
    if output is None:
        print_lines([text])
        return 0
    return 0 if write_report(output, text + "\n") else EXIT_FILES


def _actions() -> list[Row]:
    from minicluster.scenario import ACTIONS
    from minicluster.scenario.actions.action import arguments_of

    return [
        (
            name,
            (action.__doc__ or "").strip().splitlines()[0],
            " ".join(
                name if argument.required else f"[{name}]"
                for name, argument in arguments_of(action).items()
            ),
        )
        for name, action in ACTIONS.items()
    ]


def _selectors() -> list[Row]:
    from minicluster.scenario.functions import TEXTS

    return [(form, text.replace("`", "")) for form, text in TEXTS.items()]


def _rules() -> list[Row]:
    from minicluster.verify.rules.every import RULES

    return [(rule.id, str(rule.evidence), rule.title) for rule in RULES]


def fault_rows() -> list[Row]:
    """Every planted fault with its text."""
    from minicluster.faults import Faults
    from minicluster.rules import Rules

    fields = Faults.__dataclass_fields__
    rows = [(zoo, fields[name].metadata["text"]) for zoo, name in Faults.switches().items()]
    return sorted([*rows, *((zoo, f"a bug of Kafka: {name}") for zoo, name in Rules.zoo().items())])


def _configs() -> list[Row]:
    from minicluster.configs.definitions import broker_configs, topic_configs
    from minicluster.configs.without_effect import reason_without_effect

    rows = [
        (
            *(key.name, of, key.type_.lower(), "" if key.default is None else str(key.default)),
            f"no effect: {reason}" if (reason := reason_without_effect(key.name)) else "",
        )
        for of, table in (("broker", broker_configs()), ("topic", topic_configs()))
        for key in table
    ]
    return sorted(rows)


_LISTS: dict[str, tuple[Row, Callable[[], Sequence[Row]]]] = {
    "actions": (("action", "text", "arguments"), _actions),
    "selectors": (("selector", "meaning"), _selectors),
    "rules": (("rule", "evidence", "title"), _rules),
    "faults": (("fault", "text"), fault_rows),
    "configs": (("config", "of", "type", "default", "here"), _configs),
}


@click.command("list")
@click.argument("subject", type=click.Choice(list(_LISTS)))
@format_option
def list_command(subject: str, form: str) -> int:
    """List the actions, selectors, rules, faults or configs that a scenario can name."""
    names, rows = _LISTS[subject][0], _LISTS[subject][1]()
    if form == JSON:
        listed: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
        print_lines([json.dumps(listed, indent=1, ensure_ascii=False)])
        return 0
    assert form == TEXT
    if not out.is_terminal:  # one line for each, so that grep finds it whole
        widths = [max(len(row[n]) for row in rows) for n in range(len(names) - 1)]
        for row in rows:
            first = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False))
            print_line(f"{first}  {row[-1]}".rstrip())
        return 0
    table = Table(box=None, padding=(0, 1), show_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)
    return 0


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script that lets a shell complete commands, options and actions.

    \b
      bash   minicluster completion bash >> ~/.bashrc
      zsh    minicluster completion zsh >> ~/.zshrc
      fish   minicluster completion fish > ~/.config/fish/completions/minicluster.fish
    """
    script = get_completion_class(shell)
    assert script is not None
    root = context.find_root().command
    print_lines([script(root, {}, "minicluster", "_MINICLUSTER_COMPLETE").source()])
    return 0
