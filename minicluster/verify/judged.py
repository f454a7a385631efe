"""From what the rules have looked at to one verdict per rule, and one for the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from minicluster.errors import UserError
from minicluster.values import Value, replace
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.evidence.source import Source
from minicluster.verify.judging import Tally
from minicluster.verify.model import GRAVITY, Evidence, Verdict, gravest
from minicluster.verify.reporting.report import Report
from minicluster.verify.reporting.report_data import (
    FOR_KRAFT,
    FOR_ZOOKEEPER,
    NEEDS_PROGRAMS,
    NEEDS_TRACE,
    RuleResult,
    RunSummary,
)
from minicluster.verify.rules.accused import beside_the_cluster
from minicluster.verify.rules.every import BY_ID, ON_ZOOKEEPER, RULES
from minicluster.verify.rules.rule import Rule

_RUN_EVIDENCE = (Evidence.TRACE, Evidence.IMAGES, Evidence.META, Evidence.PROGRAMS)
_WHY_NOT = {Evidence.ZNODES: FOR_ZOOKEEPER, Evidence.PROGRAMS: NEEDS_PROGRAMS}


class Judged(Value, kw_only=True):
    """One run as a driver has judged it.

    Shapes:  run: without its contents. tallies and crashes: by rule.
    """

    run: Run
    tallies: Mapping[str, Tally]
    crashes: Mapping[str, str]


def chosen(ids: Iterable[str] | None) -> tuple[Rule, ...]:
    """The rules of these ids, all where none are named.

    Errors:  UserError for an id that no rule has.
    """
    if ids is None:
        return RULES
    wanted = list(dict.fromkeys(ids))
    for rule_id in wanted:
        if rule_id not in BY_ID:
            raise UserError(f"rules: there is no rule {rule_id!r}; known: {', '.join(BY_ID)}")
    return tuple(rule for rule in RULES if rule.id in wanted)


def report_of(judged: Sequence[Judged], rules: Sequence[Rule], sources: Sequence[Source]) -> Report:
    """The report on runs, with one on each of them."""
    each = tuple(
        _report([judged_run], rules, [source])
        for judged_run, source in zip(judged, sources, strict=True)
    )
    return replace(_report(judged, rules, sources), each=each)


def _report(judged: Sequence[Judged], rules: Sequence[Rule], sources: Sequence[Source]) -> Report:
    results = _beside_the_cluster([_result(rule, judged) for rule in rules])
    runs = [judged_run.run for judged_run in judged]
    whole = [reason for run in runs for reason in _run_reasons(run)]
    if not {result.verdict for result in results} & set(GRAVITY[:3]):
        whole.append("no rule had a case")
    failures = [run.header.failure for run in runs if run.header and run.header.failure]
    return Report(
        verdict=whole_verdict(results, whole, failures),
        rules=tuple(results),
        runs=tuple(RunSummary.of(run) for run in runs),
        reasons=tuple(whole),
        sources=tuple(sources),
    )


def _beside_the_cluster(results: Sequence[RuleResult]) -> list[RuleResult]:
    """What programs did wrong is told apart from what the cluster did in the same run."""
    every = [finding for result in results for finding in result.findings]
    return [
        replace(result, findings=tuple(beside_the_cluster(result.findings, every)))
        for result in results
    ]


def _result(rule: Rule, judged: Sequence[Judged]) -> RuleResult:
    """One rule over all runs."""
    by_run: list[tuple[str, Verdict, int]] = []
    reasons: list[tuple[Verdict, str]] = []
    total, exempt = Tally.empty(), Counter[str]()
    for judged_run in judged:
        applies = _applies(rule, judged_run.run)
        tally = judged_run.tallies.get(rule.id) if applies else None
        tally = Tally.empty() if tally is None else tally
        verdict, why = _judge(rule, judged_run.run, tally, judged_run.crashes.get(rule.id))
        by_run.append((judged_run.run.name, verdict, tally.looked_at))
        reasons += [(verdict, reason) for reason in why]
        total.looked_at += tally.looked_at
        total.not_promised += tally.not_promised
        exempt += tally.exempt
        if verdict is Verdict.INVALID:
            total.findings += tally.findings
    word = gravest([verdict for _, verdict, _ in by_run])
    shown = {word, Verdict.UNKNOWN}  # why one run has no cases is not why the others are valid
    return RuleResult(
        rule=rule,
        verdict=word,
        looked_at=total.looked_at,
        not_promised=total.not_promised,
        findings=tuple(sorted(set(total.findings))),
        reasons=tuple(dict.fromkeys(why for verdict, why in reasons if verdict in shown)),
        exempt=dict(exempt),
        by_run=tuple(by_run),
    )


def _judge(rule: Rule, run: Run, tally: Tally, crash: str | None) -> tuple[Verdict, list[str]]:
    """One rule on one run, with the reasons if it is unknown or has judged nothing."""
    if not _applies(rule, run):
        return Verdict.NOT_APPLICABLE, [_WHY_NOT.get(rule.evidence, FOR_KRAFT)]
    reasons = [f"{run.name}: {problem.why}" for problem in run.problems if _concerns(problem, rule)]
    # A violation in what is left of the logs stays one. What a trace seems to show may be an effect
    # of the evidence that is missing beside it.
    if tally.findings and not run.lost and not (reasons and rule.evidence in _RUN_EVIDENCE):
        return Verdict.INVALID, []
    if rule.evidence in _RUN_EVIDENCE and not run.is_run:
        return Verdict.NOT_APPLICABLE, [NEEDS_TRACE]
    if crash is not None:
        reasons.append(f"{run.name}: {crash}")
    if reasons:
        return Verdict.UNKNOWN, reasons
    if tally.looked_at:
        return Verdict.VALID, []
    if tally.not_promised:
        return Verdict.NOT_PROMISED, ["its release or metadata.version does not promise it"]
    if rule.id in _exercises(run):
        return Verdict.UNKNOWN, [f"{run.name}: the scenario exercises {rule.id}, but has no case"]
    if tally.exempt:
        return Verdict.NO_CASES, [f"exempted because {why}" for why in sorted(tally.exempt)]
    return Verdict.NO_CASES, [rule.without_cases]


def _applies(rule: Rule, run: Run) -> bool:
    """A run on ZooKeeper has znodes in place of a metadata log and of what is derived from it."""
    if rule.evidence is Evidence.PROGRAMS and not (run.header and run.header.apps):
        return False
    if run.on_zookeeper:
        return rule in ON_ZOOKEEPER
    return rule.evidence is not Evidence.ZNODES


def _concerns(problem: Problem, rule: Rule) -> bool:
    if problem.table is not None:
        return problem.table in rule.tables
    if Evidence.ZNODES in (problem.evidence, rule.evidence):
        return problem.evidence is rule.evidence
    if problem.evidence is Evidence.LOG:  # without the log nothing else can be compared
        return not (problem.partial and rule.evidence is Evidence.QUORUM)
    if problem.evidence is Evidence.IMAGES:  # the fold of the log
        return rule.evidence in (Evidence.IMAGES, Evidence.SNAPSHOTS)
    return problem.evidence is rule.evidence


def _exercises(run: Run) -> tuple[str, ...]:
    return () if run.header is None else run.header.exercises


def _run_reasons(run: Run) -> list[str]:
    """Reasons why a run proves nothing, whatever the verdicts on its rules."""
    header = run.header or RunHeader()
    reasons = [
        f"{run.name}: {problem.why}"
        for problem in run.problems
        if problem.evidence is Evidence.META
    ]
    reasons += [
        f"{run.name}: fault {fault} was on but never hit"
        for fault in header.faults
        if not header.hits.get(fault)
    ]
    reasons += [
        f"{run.name}: {problem.why}" for problem in header.recorder_problems if not problem.lacks
    ]
    reasons += [
        f"{run.name}: the scenario exercises {rule_id}, and there is no such rule"
        for rule_id in header.exercises
        if rule_id not in BY_ID
    ]
    return reasons


def whole_verdict(
    results: Sequence[RuleResult],
    reasons: Sequence[str],
    failures: Sequence[ScenarioFailure] = (),
) -> Verdict:
    """The verdict on the whole; that of a scenario that failed counts like a rule's."""
    words = [result.verdict for result in results]
    failed = [failure.verdict for failure in failures]
    if Verdict.INVALID in (*words, *failed):
        return Verdict.INVALID
    if Verdict.UNKNOWN in (*words, *failed) or reasons or Verdict.VALID not in words:
        return Verdict.UNKNOWN
    return Verdict.VALID
