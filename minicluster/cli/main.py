"""The command line: play a scenario, verify runs and logs, show a log.

Exit codes: 0 valid, 1 invalid, 2 unknown; 64 and above where nothing was judged or not all could be
written, with one line that names the mistake; 70 for a fault of this program. click parses and
rich shows the progress: both are kept up by large projects.
"""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import gettempdir

import click

from minicluster.cli.campaigns import chaos
from minicluster.cli.comparing import compare_command
from minicluster.cli.demo import demo
from minicluster.cli.exit_codes import (
    EXIT_FILES,
    EXIT_INTERNAL,
    EXIT_STOPPED,
    EXIT_UNKNOWN,
    EXIT_USAGE,
)
from minicluster.cli.explore import explore as explore_command
from minicluster.cli.exporting import export_command
from minicluster.cli.judging import show_log, verify_paths
from minicluster.cli.looking import explain, show_trace
from minicluster.cli.playing import replay, run_scenario
from minicluster.cli.querying import sql_command
from minicluster.cli.scenarios import check, completion, list_command, schema
from minicluster.cli.serving import do_command, serve_command
from minicluster.cli.terminal import (
    FULL,
    complain,
    err,
    is_full_disk,
    prepare,
    report_crash,
    shown_os_error,
)
from minicluster.cli.what_if import what_if_command
from minicluster.errors import Crash, MiniclusterError, Stopped, UserError, instead

_WHOLE = 1_000  # characters, more than any first sentence has


class _Commands(click.Group):
    """The commands; a mistake before the first of them gets the hint that a newcomer needs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            ctx.fail(f"no such option {error.option_name!r} here; a command's come behind its name")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each command, whole: click's own list cuts it off at the width."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(limit=_WHOLE))
                    for name, command in sorted(self.commands.items())
                    if not command.hidden
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            shown = [name for name, command in self.commands.items() if not command.hidden]
            ctx.fail(f"unknown command {args[0]!r}; {instead(args[0], shown)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="minicluster")
def app() -> None:
    """An Apache Kafka KRaft cluster inside a Python process, with chaos and proofs."""


for command in (
    run_scenario, demo, replay, chaos, verify_paths, show_log, sql_command, serve_command,
    do_command, check, schema, list_command, completion, show_trace, explain,
    compare_command, explore_command, export_command, what_if_command,
):  # fmt: skip
    app.add_command(command)


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Shapes:  arguments -> exit code. A user's mistake is one line on standard error, and so is a
             fault of the program, whose traceback goes to a file.
    """
    prepare()
    try:
        code = app(args=list(arguments), standalone_mode=False, prog_name="minicluster")
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        err.print(error.ctx.get_help() if error.ctx else "", markup=False)
        return EXIT_USAGE
    except click.ClickException as error:
        complain(f"minicluster: {' '.join(error.format_message().split())}")
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        complain("minicluster: stopped")
        return EXIT_STOPPED
    except Stopped as stopped:
        complain(f"minicluster: {stopped}")
        return EXIT_STOPPED
    except UserError as error:
        complain(f"minicluster: {error}")
        return error.exit_code
    except MiniclusterError as error:
        complain(f"minicluster: {error}")
        return EXIT_UNKNOWN
    except OSError as error:
        complain(f"minicluster: {shown_os_error(error)}")
        return EXIT_FILES
    except Exception as error:  # a fault of this program, never of its input
        if is_full_disk(error):
            complain(f"minicluster: {FULL}: here, or in {gettempdir()} (TMPDIR)")
            return EXIT_FILES
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11: while a class is made
            complain("minicluster: stopped")
            return EXIT_STOPPED
        report_crash(Crash(error), arguments)
        return EXIT_INTERNAL
