"""Play a random workload against the controller machine: ``python -m tests.workload``.

One line per finding, with the command that repeats it. Exit 1 when there is one.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from minicluster.errors import UserError
from minicluster.faults import Faults
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.rules import Rules
from tests.workload.operations import generate
from tests.workload.player import Case, play
from tests.workload.runs import RUN_LENGTH, Run, cases, run, shrink_run

RELEASES = ("kafka-4.3", "kafka-3.9")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0 without a finding, 1 with one, 2 for a slip in the arguments."""
    options = _parser().parse_args(arguments)
    try:
        chosen = list(_cases(options))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    findings = operations = records = 0
    for one in run(chosen, options.operations, length=options.length):
        operations += one.played.operations
        records += one.played.records
        if options.digests:
            print(f"{one.played.digest} {_command(one, options)}")
        for finding in one.played.findings:
            findings += 1
            print(f"{finding.text}\n  repeat: {_command(one, options)}")
        if one.played.findings and options.shrink:
            _show_shrunk(one)
    print(f"{operations} operations, {records} records: {findings} findings")
    return 1 if findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.workload", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=RUN_LENGTH, help="operations of one cluster")
    parser.add_argument("--rules", metavar="RULES", help="as in a scenario; default: both releases")
    parser.add_argument("--metadata-version", help="default: several")
    parser.add_argument("--elr", action=argparse.BooleanOptionalAction, help="default: both")
    parser.add_argument("--faults", action="append", default=[], metavar="ID", help="Z52, Z01, …")
    parser.add_argument("--bugs", action="append", default=[], metavar="FIELD", help="of Rules")
    parser.add_argument("--shrink", action="store_true", help="show the steps that matter")
    parser.add_argument("--digests", action="store_true", help="show what each run ends with")
    return parser


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    bugs = [zoo_id for zoo_id in options.faults if zoo_id in Rules.zoo()]
    faults = Faults.of(zoo_id for zoo_id in options.faults if zoo_id not in bugs)
    for name in [options.rules] if options.rules else RELEASES:
        rules = _with_fields(Rules.named(name).with_bugs(bugs), options.bugs)
        some: list[Case] = list(cases(rules, options.seed))
        if options.metadata_version is not None:
            version = MetadataVersion.parse(options.metadata_version)
            base = Case(rules=rules, metadata_version=version, seed=options.seed)
            some = [base, replace(base, elr=True)] if version.elr_supported(rules) else [base]
        for case in some:
            if options.elr in (None, case.elr):
                yield replace(case, faults=faults)


def _with_fields(rules: Rules, names: Sequence[str]) -> Rules:
    for name in names:
        if name not in Rules.bugs():
            raise UserError(f"rules: unknown bug {name!r}; known: {', '.join(Rules.bugs())}")
    return replace(rules, **dict.fromkeys(names, True))  # type: ignore[arg-type]


def _command(one: Run, options: argparse.Namespace) -> str:
    case = one.case
    words = [
        "python -m tests.workload",
        f"--seed {case.seed}",
        f"--rules {shlex.quote(case.rules.name)}",
    ]
    words += [f"--metadata-version {case.metadata_version}", "--elr" if case.elr else "--no-elr"]
    words += [f"--operations {len(one.operations)} --length {len(one.operations)}"]
    words += [f"--faults {zoo_id}" for zoo_id in options.faults]
    words += [f"--bugs {name}" for name in options.bugs]
    return " ".join(words)


def _show_shrunk(one: Run) -> None:
    finding = one.played.findings[0]
    operations = generate(one.case.seed, len(one.operations))
    shrunk = shrink_run(one.case, operations, finding)
    again = play(one.case, shrunk.steps, only=finding.rule).findings
    state = "" if shrunk.complete else ", out of replays"
    print(f"  shrunk to {len(shrunk.steps)} steps in {shrunk.replays} replays{state}:")
    for operation in shrunk.steps:
        print(f"    {operation.text}")
    for broken in again:
        print(f"    -> {broken.rule}: {broken.message}")


if __name__ == "__main__":
    sys.exit(main())
