"""One judgement: what a report states about one run, small enough to be kept and compared.

A line of a record is one JSON object:

    subject         its name; for chaos the seed
    verdict         of the whole
    failure         kind and rule of a scenario that failed
    reasons         why the whole is unknown
    valid, invalid, unknown, not_promised
                    per rule its cases; where there is more to state an object:
                    cases, not_promised, findings (how many), places and events (digests), first
                    (the place and the sentence of the first finding, for people)
    not_applicable  the rules, in one text; a rule of the header that is nowhere has no cases
    because         the reasons of unknown rules, each with these rules
    error           the error of a path that is not judged, in place of all the above
    live            cases per rule of the checker of the running cluster

The first line is the header: the ids of all rules. Two judgements differ where a verdict does, the
place of a finding, or whether a rule had any cases: how many, and the sentences, may change.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from minicluster.verify import Finding, Report, Verdict

Judgement = dict[str, Any]
"""One line of a record, without its subject."""

NO_CASES, NOT_APPLICABLE = str(Verdict.NO_CASES), str(Verdict.NOT_APPLICABLE)
_VERDICTS = tuple(str(verdict) for verdict in Verdict)
_ABSENT = "absent"
_SIZES = re.compile(r"\b\d+ bytes(, where the run wrote \d+)?")


def judgement_of(report: Report, path: Path) -> Judgement:
    """The judgement in a report on one run, which lies at a path."""
    (run,) = report.runs

    def without_place(text: str) -> str:
        # The folder of an unpacked or temporary run differs from play to play.
        text = text.replace(str(path.absolute()), "RUN").removeprefix(f"{run.name}: ")
        # The size of a Parquet file depends on Arrow and on columns that no rule reads.
        return _SIZES.sub("N bytes", text)

    judgement: Judgement = {"verdict": str(report.verdict)}
    if run.failure is not None:
        judgement["failure"] = [run.failure.kind, run.failure.rule]
    if report.reasons:
        judgement["reasons"] = [without_place(reason) for reason in report.reasons]
    inapplicable: list[str] = []
    because: dict[str, list[str]] = {}
    for result in report.rules:
        verdict = str(result.verdict)
        if verdict == NOT_APPLICABLE:
            inapplicable.append(result.id)
        elif verdict != NO_CASES:
            judgement.setdefault(verdict, {})[result.id] = _counts(
                result.looked_at, result.not_promised, result.findings
            )
        for reason in result.reasons:
            because.setdefault(without_place(reason), []).append(result.id)
    if inapplicable:
        judgement[NOT_APPLICABLE] = " ".join(inapplicable)
    if because:
        judgement["because"] = {why: " ".join(rules) for why, rules in because.items()}
    return judgement


def _counts(
    cases: int, not_promised: int, findings: Sequence[Finding]
) -> int | dict[str, int | str]:
    if not not_promised and not findings:
        return cases
    counts: dict[str, int | str] = {"cases": cases}
    if not_promised:
        counts["not_promised"] = not_promised
    if findings:
        places = sorted({(f.offset, f.topic, f.partition, f.broker) for f in findings})
        first = min(findings)
        counts |= {
            "findings": len(findings),
            "places": _digest(places),
            "events": _digest(sorted({finding.event for finding in findings})),
            "first": f"{first.offset} {first.topic}-{first.partition} broker {first.broker}: "
            + first.message[:120],
        }
    return counts


def _digest(values: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]


def difference(
    before: Judgement,
    after: Judgement,
    rules: Sequence[str],
    rules_now: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    """Where two judgements on a subject differ: rule or part, before, after.

    Shapes:  rules, rules_now: the ids that each of the two judges has.
    """
    for part in ("verdict", "error", "failure"):
        if before.get(part) != after.get(part):
            yield part, json.dumps(before.get(part)), json.dumps(after.get(part))
    if bool(before.get("reasons")) != bool(after.get("reasons")):
        yield "reasons", json.dumps(before.get("reasons")), json.dumps(after.get("reasons"))
    texts, texts_now = _by_rule(before, rules), _by_rule(after, rules_now)
    for rule in dict.fromkeys((*rules, *rules_now)):
        old, new = texts.get(rule, _ABSENT), texts_now.get(rule, _ABSENT)
        if old != new:
            yield rule, old, new
    if "live" in before and "live" in after:
        live, live_now = before["live"], after["live"]
        for rule in dict.fromkeys((*live, *live_now)):
            if bool(live.get(rule)) != bool(live_now.get(rule)):
                yield f"live {rule}", f"{live.get(rule)} cases", f"{live_now.get(rule)} cases"


def _by_rule(judgement: Judgement, rules: Sequence[str]) -> dict[str, str]:
    """What of each rule must stay the same, as one text."""
    if "error" in judgement:
        return {}
    texts = dict.fromkeys(rules, NO_CASES)
    texts |= dict.fromkeys(judgement.get(NOT_APPLICABLE, "").split(), NOT_APPLICABLE)
    for verdict in _VERDICTS:
        of_verdict = judgement.get(verdict)
        if isinstance(of_verdict, Mapping):
            texts |= {rule: _text(verdict, counts) for rule, counts in of_verdict.items()}
    return texts


def _text(verdict: str, counts: int | Mapping[str, Any]) -> str:
    if isinstance(counts, int):
        counts = {"cases": counts}
    text = verdict if counts["cases"] else f"{verdict} without a case"
    if "not_promised" in counts:
        text += ", some not promised"
    if "findings" in counts:
        text += f", found at {counts['places']} by {counts['events']}"
    return text
