"""Reports of a command: on the terminal, and as files of a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.cli.options import JSON
from minicluster.cli.terminal import complain, console, out, print_lines, shown_os_error

if TYPE_CHECKING:
    from minicluster.verify import Report


def show_report(report: Report, form: str, every_rule: bool, *, by_subject: bool = False) -> None:
    """Print a report."""
    if form == JSON:
        print_lines([report.to_json()])
    else:
        from minicluster.verify.reporting.text import print_report

        width = out.width if out.is_terminal else None
        print_report(console(), report, width=width, every_rule=every_rule, by_subject=by_subject)


def leave_report(run: Path, report: Report) -> bool:
    """Write the report of a run into its folder; False where that is impossible."""
    try:
        report.leave(run)
    except OSError as error:
        complain(f"minicluster: {shown_os_error(error, 'cannot be written: ')}")
        return False
    return True


def write_report(path: Path, text: str) -> bool:
    """Write a report; False, after one line that gives the reason, where that is impossible."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"minicluster: {path}: cannot be written: {error.strerror or error}")
        return False
    return True
