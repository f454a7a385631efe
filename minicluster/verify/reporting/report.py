"""The report of a verification: data, with its forms as text, JSON and one HTML page."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from minicluster.errors import MiniclusterError
from minicluster.values import dataclass, replace
from minicluster.verify.reporting.junit import junit
from minicluster.verify.reporting.page import page
from minicluster.verify.reporting.report_data import GRAVE, ReportData
from minicluster.verify.reporting.text import print_report

PAGE, DATA = "report.html", "report.json"


class NotValid(MiniclusterError, AssertionError):
    """A run was judged, and its verdict is another one than valid."""

    def __init__(self, report: Report) -> None:
        text = report.to_text(every_rule=False).rstrip()
        super().__init__("\n".join([text, *report.places()]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(ReportData):
    """The verdict on one or several runs.

    Arguments:  verdict, one RuleResult per rule, one RunSummary per run; reasons why the whole is
                unknown; sources: the evidence, for the records around a finding; each: the report
                on each run alone, in the order of runs.
    """

    each: tuple[Report, ...] = ()

    def __repr__(self) -> str:
        broken = [result for result in self.rules if result.verdict in GRAVE]
        parts = [str(run.failure.text.splitlines()[0]) for run in self.runs if run.failure]
        parts += [f"{result.id} {result.verdict}: {result.first}" for result in broken]
        return f"<Report {'; '.join([str(self.verdict), *parts, *self.reasons])}>"

    def assert_valid(self) -> None:
        """Fail a test unless every promise was kept and something was judged.

        Errors:  NotValid, which shows what is broken or unknown, and the paths of run and page.
        """
        if not self.valid:
            raise NotValid(self)

    def leave(self, run: Path) -> None:
        """Write the page and the JSON into a run folder, which is where they place the run.

        Errors:  OSError with the file that cannot be written; half a file is not left.
        """
        placed = self
        if len(self.runs) == 1:
            placed = replace(self, runs=(replace(self.runs[0], path=str(run)),))
        _write(run / PAGE, placed.to_html())
        _write(run / DATA, placed.to_json() + "\n")

    def places(self) -> list[str]:
        """Where the run folders and the pages lie, one line for each that is there."""
        lines = []
        for run in self.runs:
            if (folder := Path(run.path)).is_dir():
                lines.append(f"run     {folder}")
            if (page_path := folder / PAGE).is_file():
                lines.append(f"report  {page_path.resolve().as_uri()}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "verdict": str(self.verdict),
            "headline": self.headline,
            "runs": [
                {
                    "name": run.name,
                    "path": run.path,
                    "records": run.records,
                    "notes": list(run.notes),
                    "failure": None if run.failure is None else run.failure.to_dict(),
                }
                for run in self.runs
            ],
            "rules": [result.to_dict() for result in self.rules],
            "reasons": list(self.reasons),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_junit(self) -> str:
        """The report as JUnit XML, for CI."""
        return junit(self)

    def to_html(self) -> str:
        """The report as one page that needs no network."""
        return page(self)

    def to_text(
        self, *, width: int | None = None, colour: bool = False, every_rule: bool = True
    ) -> str:
        """The report for people.

        Arguments:  width: of the lines, None: each finding is one whole line; every_rule False: one
                    line if all is well, else the rules that are not.
        """
        out = StringIO()
        console = Console(
            file=out,
            force_terminal=colour,
            color_system="standard" if colour else None,
            highlight=False,
        )
        print_report(console, self, width=width, every_rule=every_rule)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:  # of a write, such as on a full disk, it names no file
        file.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(file)) from None
