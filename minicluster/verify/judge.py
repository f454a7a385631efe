"""Judgement of runs: from their evidence to one verdict per rule and one for the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.errors import UserError
from minicluster.log.format.limits import ReadLimits
from minicluster.own_folders import temporary_folder
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.evidence.source import Source
from minicluster.verify.reporting.report import Report
from minicluster.verify.reporting.report_data import RuleResult, RunSummary
from minicluster.verify.rules import ALSO_ON_ZOOKEEPER, BY_ID, RULES, Evidence, Rule, Verdict
from minicluster.verify.rules.model import GRAVITY, gravest
from minicluster.verify.rules.user_rules import load_rules
from minicluster.verify.spark import routing
from minicluster.verify.spark.fold_job import Task
from minicluster.verify.spark.progress import OnProgress, Progress
from minicluster.verify.spark.travel import Fetched
from minicluster.verify.tally import Tallies, Tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUN_EVIDENCE = (Evidence.TRACE, Evidence.IMAGES, Evidence.META)


def judge_paths(
    paths: Sequence[Path | str],
    started: Callable[[], SparkSession],
    *,
    rules: Iterable[str] | None,
    rules_from: Path | None,
    limits: ReadLimits,
    on_progress: OnProgress | None,
) -> Report:
    """Judge runs and logs, all in one job of the session, which is started when it is needed.

    Errors:  as ``verify``.
    """
    user = None if rules_from is None else load_rules(rules_from)
    chosen = _chosen(rules) if user is None else (*_chosen(rules), *user.rules)
    with temporary_folder("fetched") as folder:
        here = Fetched(folder.path, started)
        routes = routing.routes_of(here.paths(paths), limits, here.origin)
        sources = routing.sources_of(routes, limits)
        tallies = Tallies()
        task = Task(chosen, limits, user, on_progress)
        if on_progress is not None:
            on_progress(Progress("starting Spark"))
        read = routing.judge_routes(started(), routes, task, tallies)
    return _report(read, chosen, tallies, sources)


def _chosen(rules: Iterable[str] | None) -> tuple[Rule, ...]:
    if rules is None:
        return RULES
    wanted = list(dict.fromkeys(rules))
    for rule_id in wanted:
        if rule_id not in BY_ID:
            raise UserError(f"rules: {rule_id!r} is no rule; known: {', '.join(BY_ID)}")
    return tuple(rule for rule in RULES if rule.id in wanted)


def _report(
    runs: Sequence[Run],
    rules: Sequence[Rule],
    tallies: Tallies,
    sources: Sequence[Source],
) -> Report:
    each = tuple(
        _report_on([run], rules, tallies, [source])
        for run, source in zip(runs, sources, strict=True)
    )
    return replace(_report_on(runs, rules, tallies, sources), each=each)


def _report_on(
    runs: Sequence[Run],
    rules: Sequence[Rule],
    tallies: Tallies,
    sources: Sequence[Source],
) -> Report:
    judged: list[RuleResult] = []
    for rule in rules:
        by_run: list[tuple[str, Verdict, int]] = []
        reasons: list[str] = []
        total = Tally()
        for run in runs:
            tally = tallies.of(rule.id, run.name) if _applies(rule, run) else Tally()
            verdict, why = _judge(rule, run, tally, tallies.crashes)
            by_run.append((run.name, verdict, tally.looked_at))
            reasons += why
            total.looked_at += tally.looked_at
            total.not_promised += tally.not_promised
            if verdict is Verdict.INVALID:
                total.findings += tally.findings
        judged.append(
            RuleResult(
                rule=rule,
                verdict=gravest([word for _, word, _ in by_run]),
                looked_at=total.looked_at,
                not_promised=total.not_promised,
                findings=tuple(sorted(set(total.findings))),
                reasons=tuple(dict.fromkeys(reasons)),
                by_run=tuple(by_run),
            )
        )
    whole = [reason for run in runs for reason in _run_reasons(run)]
    if not {result.verdict for result in judged} & set(GRAVITY[:3]):
        whole.append("no rule had a case")
    failures = [run.header.failure for run in runs if run.header and run.header.failure]
    return Report(
        verdict=whole_verdict(judged, whole, failures),
        rules=tuple(judged),
        runs=tuple(RunSummary.of(run) for run in runs),
        reasons=tuple(whole),
        sources=tuple(sources),
    )


def _judge(
    rule: Rule, run: Run, tally: Tally, crashes: Mapping[str, str]
) -> tuple[Verdict, list[str]]:
    """One rule on one run, with the reasons if it is unknown."""
    if not _applies(rule, run):
        return Verdict.NOT_APPLICABLE, []
    reasons = [f"{run.name}: {problem.why}" for problem in run.problems if _concerns(problem, rule)]
    # A violation in what is left of the logs stays one. What a trace seems to show may be an effect
    # of the evidence that is missing beside it.
    if tally.findings and not run.lost and not (reasons and rule.evidence in _RUN_EVIDENCE):
        return Verdict.INVALID, []
    if rule.evidence in _RUN_EVIDENCE and not run.is_run:
        return Verdict.NOT_APPLICABLE, []
    reasons += [f"{run.name}: it crashed: {crashes[v]}" for v in rule.views if v in crashes]
    if reasons:
        return Verdict.UNKNOWN, reasons
    if tally.looked_at:
        return Verdict.VALID, []
    if tally.not_promised:
        return Verdict.NOT_PROMISED, []
    if rule.id in _exercises(run):
        return Verdict.UNKNOWN, [f"{run.name}: the scenario exercises {rule.id}, but has no case"]
    return Verdict.NO_CASES, []


def _applies(rule: Rule, run: Run) -> bool:
    """A run on ZooKeeper has znodes in place of a metadata log and of what is derived from it."""
    if run.on_zookeeper:
        return rule.evidence is Evidence.ZNODES or rule.id in ALSO_ON_ZOOKEEPER
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
        f"{run.name}: the scenario exercises {rule_id}, which is no rule"
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
