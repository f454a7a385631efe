"""Judging evidence through the public face of ``minicluster.verify``, many runs in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from minicluster.errors import UserError
from minicluster.verify import Report
from minicluster.verify import verify as verify_runs
from tests.judgements.evidence import Evidence, Subject
from tests.judgements.judgement import Judgement, judgement_of
from tests.judgements.kept import Kept

SPARK = "spark"
Verify = Callable[..., Report]
Judged = tuple[dict[str, Judgement], tuple[str, ...]]
"""The judgements by subject, and the ids of the rules."""


def by_driver(driver: str) -> Verify:
    """The judge to call: Spark by default, any other driver as the ``engine`` of ``verify``."""
    verify: Verify = verify_runs
    return verify if driver == SPARK else partial(verify, engine=driver)


def judge(evidence: Mapping[str, Evidence], verify: Verify) -> Judged:
    """The judgements on some evidence, from one call where every path can be judged."""
    reports = _reports([item.path for item in evidence.values()], verify)
    judgements: dict[str, Judgement] = {}
    rules: tuple[str, ...] = ()
    for (subject, item), report in zip(evidence.items(), reports, strict=True):
        if isinstance(report, UserError):
            text = str(report).replace(str(item.path), "RUN")
            judgements[subject] = {"error": text}
        else:
            judgements[subject] = judgement_of(report, item.path)
            rules = tuple(result.id for result in report.rules)
        if item.live is not None:
            judgements[subject]["live"] = dict(item.live)
    return judgements, rules


def _reports(paths: Sequence[Path], verify: Verify) -> list[Report | UserError]:
    """The report on each path, or the error of one that holds nothing to judge."""
    try:
        return list(verify(*paths).each)
    except UserError as error:
        if len(paths) == 1:
            return [error]
    middle = len(paths) // 2
    return _reports(paths[:middle], verify) + _reports(paths[middle:], verify)


def judged(
    kind: str, subjects: Mapping[str, Subject], kept: Kept, verify: Verify, *, at_once: int
) -> Iterator[Judged]:
    """Make the evidence of subjects and judge it, so many at once."""
    every = list(subjects)
    for names in (every[first : first + at_once] for first in range(0, len(every), at_once)):
        there = kept.of_kind(kind)
        made = {n: there.get(n) or kept.made(kind, n, subjects[n]) for n in names}
        yield judge(made, verify)
        kept.done_with(kind)
