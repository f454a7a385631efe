"""``verify``: runs and logs are judged in Spark, or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from minicluster.errors import UserError
from minicluster.values import replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from minicluster.log.format.limits import ReadLimits
    from minicluster.verify.evidence.source import Source
    from minicluster.verify.judged import Judged
    from minicluster.verify.reporting.report import Report
    from minicluster.verify.rules.own_rules import OwnRules
    from minicluster.verify.rules.rule import Rule
    from minicluster.verify.spark.progress import OnProgress

Engine = Literal["spark", "process"]
ENGINES = ("spark", "process")


def verify(
    *runs: Path | str,
    engine: Engine = "spark",
    spark: SparkSession | None = None,
    master: str | None = None,
    remote: str | None = None,
    rules: Iterable[str] | None = None,
    rules_from: Path | str | None = None,
    limits: ReadLimits | None = None,
    on_progress: OnProgress | None = None,
) -> Report:
    """Judge runs and logs by all rules.

    Arguments:  paths of runs, folders or files, also on a file system of Hadoop's -> Report.
                engine: ``spark`` judges any amount, here or on a cluster; ``process`` judges in
                this process, without a JVM. rules: ids of those to judge by. rules_from: a Python
                file with more rules (``own_rules``). limits: the most that reading one file may
                take. on_progress is called from another thread.
    Errors:  UserError for a path that holds nothing to judge; SparkUnavailable.
    """
    if engine not in ENGINES:
        raise UserError(f"engine: {engine!r} is not one of {', '.join(ENGINES)}")
    in_spark = engine == "spark"
    if in_spark and spark is None:  # Java loads its classes while Python loads the rules
        from minicluster.verify.spark import session

        session.warm_up(master=master, remote=remote)
    elif not in_spark and (master or remote or spark is not None):
        raise UserError("engine: 'process' judges in this process, without a session of Spark")
    from minicluster.log.format.limits import DEFAULT_LIMITS
    from minicluster.own_folders import temporary_folder
    from minicluster.verify.evidence.reading import named_paths
    from minicluster.verify.evidence.source import sources_of
    from minicluster.verify.judged import chosen, report_of
    from minicluster.verify.rules.own_rules import load_rules
    from minicluster.verify.spark.travel import Fetched

    limits = DEFAULT_LIMITS if limits is None else limits
    own = None if rules_from is None else load_rules(Path(rules_from))
    every = chosen(rules) if own is None else (*chosen(rules), *own.rules)

    def started() -> Any:
        from minicluster.verify.spark import session

        return session.spark_session(spark, master=master, remote=remote)

    with temporary_folder("fetched") as folder:
        here = Fetched(folder.path, started if in_spark else None)
        named = named_paths(here.paths(runs))
        are_copies = any(path.is_relative_to(folder.path) for path, _ in named)
        sources = sources_of(named, limits, go_away=are_copies or not in_spark)
        if in_spark:
            origins = [here.origin(path) for path, _ in named]
            judged = _in_spark(started, named, origins, chosen(rules), own, limits, on_progress)
        else:
            judged = _in_this_process(sources, every, own, limits, on_progress)
        return report_of(judged, every, sources)


def _in_spark(
    started: Callable[[], SparkSession],
    named: Sequence[tuple[Path, str]],
    origins: Sequence[str | None],
    rules: Sequence[Rule],
    own: OwnRules | None,
    limits: ReadLimits,
    on_progress: OnProgress | None,
) -> list[Judged]:
    """Judge in a session of Spark, which is started when it is needed."""
    from minicluster.verify.spark.judging_worker import Task
    from minicluster.verify.spark.pipeline import judge_in_spark
    from minicluster.verify.spark.progress import Progress

    if on_progress is not None:
        on_progress(Progress("starting Spark"))
    spark = started()
    task = Task.of(rules, own)
    judged = judge_in_spark(
        spark, named, task, limits=limits, origins=origins, on_progress=on_progress
    )
    if own is None or not own.in_sql:
        return judged
    from minicluster.verify.shown.sql_rules import judge_sql_rules

    tallies = judge_sql_rules(spark, [path for path, _ in named], own.in_sql, limits, origins)
    return [
        replace(judged_run, tallies={**judged_run.tallies, **tallies.get(judged_run.run.name, {})})
        for judged_run in judged
    ]


def _in_this_process(
    sources: Sequence[Source],
    rules: Sequence[Rule],
    own: OwnRules | None,
    limits: ReadLimits,
    on_progress: OnProgress | None,
) -> list[Judged]:
    """Judge one run after the other; rules in SQL cannot be judged here, and are unknown."""
    from minicluster.verify.log_rows import Item
    from minicluster.verify.spark.progress import Progress
    from minicluster.verify.whole import judge_item, judge_whole

    judged: list[Judged] = []
    for number, source in enumerate(sources):
        if on_progress is not None:
            done = number / len(sources)
            on_progress(Progress(f"judging {source.name}", number, len(sources), done))
        histories = () if own is None else own.histories
        if source.held is not None:
            judged_run = judge_whole(source.held, rules, histories)
        else:
            item = Item.at(source.path, source.name, limits)
            judged_run = judge_item(item, rules, histories, limits)
        in_sql = () if own is None else own.in_sql
        crashes = {
            rule.id: "a rule in SQL needs Spark, and the engine is 'process'" for rule in in_sql
        }
        judged.append(replace(judged_run, crashes={**judged_run.crashes, **crashes}))
    return judged
