"""The records of judgements on disk: one file for each kind, one line for each subject."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.judgements.judgement import Judgement

FOLDER = Path(__file__).parents[1] / "data" / "judgements"


@dataclass
class Record:
    """The judgements of one kind, by subject, and the ids of the rules that were judged."""

    rules: tuple[str, ...] = ()
    judgements: dict[str, Judgement] = field(default_factory=dict)

    def add(self, judgements: Mapping[str, Judgement], rules: Sequence[str]) -> None:
        """Add judgements, or replace those of the same subjects.

        Shapes:  rules: none where no subject could be judged.
        Errors:  ValueError where a part of the record was judged by other rules.
        """
        if rules and self.rules != tuple(rules):
            if self.judgements.keys() - judgements.keys():
                raise ValueError("the rules have changed: remove the record of the kind first")
            self.rules = tuple(rules)
        self.judgements |= judgements


def read_record(kind: str, folder: Path = FOLDER) -> Record:
    """The record of a kind, empty where there is none."""
    path = folder / f"{kind}.jsonl"
    if not path.exists():
        return Record()
    header, *lines = map(json.loads, path.read_text().splitlines())
    return Record(
        rules=tuple(header["rules"].split()),
        judgements={line.pop("subject"): line for line in lines},
    )


def write_record(kind: str, record: Record, folder: Path = FOLDER) -> None:
    """Write the record of a kind, its subjects in order; seeds are numbers."""
    lines: list[Judgement] = [{"rules": " ".join(record.rules)}]
    for subject in sorted(record.judgements, key=_order):
        lines.append({"subject": subject, **record.judgements[subject]})
    text = "".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kind}.jsonl").write_text(text)


def _order(subject: str) -> tuple[int, str]:
    return (int(subject), "") if subject.isdigit() else (0, subject)
