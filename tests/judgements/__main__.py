"""``python -m tests.judgements record|compare``: judgements as they are, and beside those recorded.

``compare`` prints subject, rule, before -> after, and ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from tests.judgements.evidence import ALL_KINDS, SEEDS, Evidence, Subject, subjects
from tests.judgements.judgement import difference
from tests.judgements.judging import SPARK, by_driver, judged
from tests.judgements.kept import Kept, kept_in
from tests.judgements.record import FOLDER, read_record, write_record

AT_ONCE = {"chaos": 10, "zookeeper": 20}
"""Played and judged together, after which the record is written; of other kinds all but a few."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    options = _parser().parse_args(arguments)
    with kept_in(options.keep or options.kept) as kept:
        kinds = options.kind or ALL_KINDS
        differences = sum(options.run(kind, kept, options) for kind in kinds)
    if options.run is _compare:
        print(f"{differences} differences")
    return 1 if differences else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.judgements", description=__doc__)
    commands = parser.add_subparsers(required=True)
    record = commands.add_parser("record", help="write tests/data/judgements")
    record.set_defaults(run=_record, kept=None)
    record.add_argument("--keep", type=Path, help="leave the evidence here; use what is there")
    compare = commands.add_parser("compare", help="judge, and print what differs")
    compare.set_defaults(run=_compare, keep=None)
    compare.add_argument("--kept", type=Path, help="judge this evidence of record --keep")
    for command in (record, compare):
        command.add_argument("--kind", action="append", choices=ALL_KINDS, help="default: all")
        command.add_argument("--seeds", type=_numbers, help="1-50 or 7,9-12, of chaos")
        command.add_argument("--only", default="*", help="subjects like this: 'trace_cases.b*'")
        command.add_argument("--driver", default=SPARK, help="spark, process: the engine of verify")
        command.add_argument("--records", type=Path, default=FOLDER, help=argparse.SUPPRESS)
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _chosen(kind: str, kept: Kept, options: argparse.Namespace) -> dict[str, Subject]:
    """The subjects to judge: those of kept evidence, or all of a kind."""
    every: dict[str, Subject] = {}
    if options.kept is None:
        every = subjects(kind, options.seeds)
    else:
        every = {name: partial(_there, item) for name, item in kept.of_kind(kind).items()}
    return {name: subject for name, subject in every.items() if _is_chosen(kind, name, options)}


def _there(evidence: Evidence, folder: Path) -> Evidence:
    return evidence


def _is_chosen(kind: str, name: str, options: argparse.Namespace) -> bool:
    if kind in SEEDS and options.seeds is not None and int(name) not in options.seeds:
        return False
    return fnmatch(name, options.only)


def _record(kind: str, kept: Kept, options: argparse.Namespace) -> int:
    """Judge the subjects of a kind that were chosen, and record the judgements."""
    chosen = _chosen(kind, kept, options)
    verify, at_once = by_driver(options.driver), AT_ONCE.get(kind, 100)
    recorded = 0
    for judgements, rules in judged(kind, chosen, kept, verify, at_once=at_once):
        record = read_record(kind, options.records)
        record.add(judgements, rules)
        write_record(kind, record, options.records)
        recorded += len(judgements)
        print(f"{kind}: {recorded} of {len(chosen)} recorded", flush=True)
    return 0


def _compare(kind: str, kept: Kept, options: argparse.Namespace) -> int:
    """Judge the subjects of a kind that were chosen; the number of differences."""
    record = read_record(kind, options.records)
    before = {n: j for n, j in record.judgements.items() if _is_chosen(kind, n, options)}
    chosen = _chosen(kind, kept, options)
    if options.kept is not None or kind in SEEDS:  # a part of the seeds is a fair sample
        before = {name: one for name, one in before.items() if name in chosen}
    verify, at_once = by_driver(options.driver), AT_ONCE.get(kind, 100)
    differences = 0

    def show(subject: str, rule: str, old: str, new: str) -> None:
        nonlocal differences
        differences += 1
        print(f"{kind}/{subject}  {rule}  {old} -> {new}", flush=True)

    for subject in before.keys() - chosen.keys():
        show(subject, "subject", "recorded", "gone")
    for judgements, rules in judged(kind, chosen, kept, verify, at_once=at_once):
        for subject, after in judgements.items():
            if subject not in before:
                show(subject, "subject", "not recorded", "judged")
                continue
            for rule, old, new in difference(before[subject], after, record.rules, rules):
                show(subject, rule, old, new)
    print(f"{kind}: {len(chosen)} compared", flush=True)
    return differences


if __name__ == "__main__":
    sys.exit(main())
