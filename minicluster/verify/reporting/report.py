"""The report of a verification: data, with its forms as text, JSON and one HTML page."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from rich.console import Console

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.reporting.page import page
from minicluster.verify.reporting.report_data import ReportData
from minicluster.verify.reporting.text import print_report


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(ReportData):
    """The verdict on one or several runs.

    Shapes:  verdict, one RuleResult per rule, one RunSummary per run; reasons why the whole is
             unknown; sources: the evidence, for the records around a finding; each: the report on
             each run alone, in the order of runs.
    """

    each: tuple[Report, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "verdict": str(self.verdict),
            "runs": [
                {
                    "name": run.name,
                    "path": run.path,
                    "records": run.records,
                    "notes": list(run.notes),
                }
                for run in self.runs
            ],
            "rules": [result.to_dict() for result in self.rules],
            "reasons": list(self.reasons),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_html(self) -> str:
        """The report as one page that needs no network."""
        return page(self)

    def to_text(
        self, *, width: int | None = None, colour: bool = False, every_rule: bool = True
    ) -> str:
        """The report for a terminal.

        Shapes:  every_rule False: one line if all is well, else the rules that are not.
        """
        out = StringIO()
        console = Console(
            file=out,
            width=width or 100,
            force_terminal=colour,
            color_system="standard" if colour else None,
            highlight=False,
        )
        print_report(console, self, every_rule=every_rule)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
