"""Judgement of runs: from their evidence to one verdict per rule and one for the whole."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from minicluster.errors import UserError
from minicluster.lazy_dataclass import dataclass
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.verify.evidence.reading import read_runs
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.reporting.report import Report
from minicluster.verify.reporting.report_data import RuleResult, RunSummary
from minicluster.verify.rules import BY_ID, RULES, VIEWS, Evidence, Finding, Rule, Verdict
from minicluster.verify.rules.model import GRAVITY, finding_message, gravest
from minicluster.verify.spark import fold_job, queries, session
from minicluster.verify.spark import tables as spark_tables
from minicluster.verify.spark.queries import CheckResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Up to here a run's rows are folded in one worker; above, Spark plans its queries.
FOLDED_ROWS = 200_000
_LOG_EVIDENCE = (Evidence.LOG, Evidence.QUORUM)
_RUN_EVIDENCE = (Evidence.TRACE, Evidence.IMAGES, Evidence.META)


def verify(
    *runs: Path | str,
    spark: SparkSession | None = None,
    master: str | None = None,
    remote: str | None = None,
    rules: Iterable[str] | None = None,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Report:
    """Judge runs and logs, all in one job.

    Shapes:  paths of runs, folders or files -> Report. limits: the most that reading one file
             may take.
    Errors:  UserError for a path that holds nothing to judge; SparkUnavailable.
    """
    chosen = _chosen(rules)
    if spark is None:
        session.warm_up(master=master, remote=remote, training=True)
    read = read_runs(runs, limits)
    folder = Path(tempfile.mkdtemp(prefix="minicluster-verify-"))
    try:
        tables, read = spark_tables.gather(read, chosen)
        local = remote is None and (master or "local").startswith("local") and spark is None
        small, large = _by_size(read, tables)
        of_large = _of_runs(tables, large)
        files = spark_tables.write(of_large, folder) if local else {}
        started = session.spark_session(spark, master=master, remote=remote)
        results, crashes = _judge_small(started, small, tables, chosen)
        if large:
            more, more_crashes = _judge_large(started, large, of_large, files, chosen)
            results, crashes = results + more, crashes | more_crashes
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _report(read, chosen, results, crashes)


def _chosen(rules: Iterable[str] | None) -> tuple[Rule, ...]:
    if rules is None:
        return RULES
    wanted = list(dict.fromkeys(rules))
    for rule_id in wanted:
        if rule_id not in BY_ID:
            raise UserError(f"rules: {rule_id!r} is no rule; known: {', '.join(BY_ID)}")
    return tuple(rule for rule in RULES if rule.id in wanted)


def _by_size(runs: Sequence[Run], tables: Mapping[str, pa.Table]) -> tuple[list[Run], list[Run]]:
    """Runs of few rows, and those for which Spark's planning is worth its time."""
    rows: Counter[str] = Counter()
    for table in tables.values():
        for one in pc.value_counts(table["run"]).to_pylist():
            rows[one["values"]] += one["counts"]
    small = [run for run in runs if rows[run.name] <= FOLDED_ROWS]
    return small, [run for run in runs if rows[run.name] > FOLDED_ROWS]


def _of_runs(tables: Mapping[str, pa.Table], runs: Sequence[Run]) -> dict[str, pa.Table]:
    """The rows of these runs."""
    names = pa.array([run.name for run in runs], type=pa.string())
    return {name: table.filter(pc.is_in(table["run"], names)) for name, table in tables.items()}


def _judge_small(
    spark: SparkSession, runs: Sequence[Run], tables: Mapping[str, pa.Table], rules: Sequence[Rule]
) -> tuple[list[CheckResult], dict[str, str]]:
    if not runs:
        return [], {}
    return fold_job.judge_runs(spark, runs, _of_runs(tables, runs), rules, VIEWS)


def _judge_large(
    spark: SparkSession,
    runs: Sequence[Run],
    tables: Mapping[str, pa.Table],
    files: Mapping[str, Path],
    rules: Sequence[Rule],
) -> tuple[list[CheckResult], dict[str, str]]:
    few = session.tune(spark, sum(table.num_rows for table in tables.values()))
    frames = spark_tables.frames(spark, tables, files, few=few)
    views = queries.needed_views(rules, with_trace=any(run.is_run for run in runs))
    views = [view for view in views if queries.has_rows(view, tables)]
    return _judge_views(spark, frames, rules, views, few=few)


def _judge_views(
    spark: SparkSession,
    frames: Mapping[str, Any],
    rules: Sequence[Rule],
    views: Sequence[str],
    *,
    few: bool,
) -> tuple[list[CheckResult], dict[str, str]]:
    """Judge all views in two streams of jobs, since planning is most of the work and is sequential.

    One stream computes the partitions' fold and judges what builds on folds; the other computes
    the brokers' fold and judges the rest.

    Shapes:  -> results, and for each view that crashed the reason.
    """
    folded = [view for view in views if queries.reads_folds(view)]
    rest = [view for view in views if view not in folded]
    queries.prepare(spark, frames)
    with ThreadPoolExecutor(max_workers=2) as pool:
        brokers = pool.submit(queries.compute_fold, spark, "broker_states")
        partitions = pool.submit(queries.compute_fold, spark, "partition_states")
        others = pool.submit(_stream, spark, rules, rest, few)
        crashed = next((e for e in (brokers.exception(), partitions.exception()) if e), None)
        if crashed is None:
            results, crashes = _stream(spark, rules, folded, few)
        else:
            results, crashes = [], dict.fromkeys(folded, _first_line(crashed))
        more, more_crashes = others.result()
    return results + more, crashes | more_crashes


def _stream(
    spark: SparkSession, rules: Sequence[Rule], views: Sequence[str], few: bool
) -> tuple[list[CheckResult], dict[str, str]]:
    """Judge some views as one job; if it fails, view by view, so that a fault spoils one view."""
    try:
        return queries.collect(spark, rules, views, few=few), {}
    except Exception as error:
        if len(views) == 1:
            return [], {views[0]: _first_line(error)}
    results: list[CheckResult] = []
    crashes: dict[str, str] = {}
    for view in views:
        try:
            results += queries.collect(spark, rules, [view], few=few)
        except Exception as error:
            crashes[view] = _first_line(error)
    return results, crashes


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@dataclass(slots=True)
class _Tally:
    """The counts and findings of all checks of one rule in one run."""

    looked_at: int = 0
    not_promised: int = 0
    findings: tuple[Finding, ...] = ()


def _tallies(results: Iterable[CheckResult]) -> dict[tuple[str, str], _Tally]:
    tallies: dict[tuple[str, str], _Tally] = {}
    for result in results:
        tally = tallies.setdefault((result.rule.id, result.run), _Tally())
        if result.check.counts:
            tally.looked_at += result.looked_at
            tally.not_promised += result.not_promised
        tally.findings += tuple(_finding(result, row) for row in result.findings)
    return tallies


def _finding(result: CheckResult, row: Any) -> Finding:
    return Finding(
        run=result.run,
        offset=-1 if row.offset is None else row.offset,
        rule=result.rule.id,
        topic=row.topic or "",
        partition=-1 if row.part is None else row.part,
        broker=-1 if row.broker is None else row.broker,
        message=finding_message(
            result.check,
            offset=row.offset,
            topic=row.topic,
            partition=row.part,
            broker=row.broker,
            old=row.old,
            new=row.new,
            number=row.number,
        ),
    )


def _report(
    runs: Sequence[Run],
    rules: Sequence[Rule],
    results: list[CheckResult],
    crashes: Mapping[str, str],
) -> Report:
    tallies = _tallies(results)
    each = tuple(_report_on([run], rules, tallies, crashes) for run in runs)
    return replace(_report_on(runs, rules, tallies, crashes), each=each)


def _report_on(
    runs: Sequence[Run],
    rules: Sequence[Rule],
    tallies: Mapping[tuple[str, str], _Tally],
    crashes: Mapping[str, str],
) -> Report:
    judged: list[RuleResult] = []
    for rule in rules:
        by_run: list[tuple[str, Verdict, int]] = []
        reasons: list[str] = []
        total = _Tally()
        for run in runs:
            tally = tallies.get((rule.id, run.name), _Tally())
            verdict, why = _judge(rule, run, tally, crashes)
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
        sources=tuple(runs),
    )


def _judge(
    rule: Rule, run: Run, tally: _Tally, crashes: Mapping[str, str]
) -> tuple[Verdict, list[str]]:
    """One rule on one run, with the reasons if it is unknown."""
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


def _concerns(problem: Problem, rule: Rule) -> bool:
    if problem.table is not None:
        return problem.table in rule.tables
    if problem.evidence is Evidence.LOG:  # without the log nothing else can be compared
        return not (problem.partial and rule.evidence is Evidence.QUORUM)
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
