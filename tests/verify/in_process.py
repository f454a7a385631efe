"""The judgement of one run as a worker of Spark makes it, in this process and without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify.rules import BY_ID
from minicluster.verify.rules.model import finding_message
from minicluster.verify.spark.fold_job import Item, Judged, Task, _judge_one


def judged(run: Path, *rule_ids: str) -> dict[str, tuple[int, list[str]]]:
    """Per rule the number of cases, and the messages of its findings."""
    rules = tuple(BY_ID[rule_id] for rule_id in rule_ids)
    done = _judge_one(Task(rules, DEFAULT_LIMITS).pickled(), Item(run, run.name).pickled())
    found: Judged | None = pickle.loads(done)
    assert found is not None, run
    assert not found.crashes, found.crashes
    assert not found.run.problems, found.run.problems
    result: dict[str, tuple[int, list[str]]] = {rule.id: (0, []) for rule in rules}
    for place, index, looked_at, _, rows in found.checks:
        rule = rules[place]
        check = rule.checks[index]
        cases, messages = result[rule.id]
        for offset, topic, partition, broker, old, new, number in rows:
            text = finding_message(
                check, offset=offset, topic=topic, partition=partition, broker=broker,
                old=old, new=new, number=number,
            )  # fmt: skip
            messages.append(text)
        result[rule.id] = (cases + (looked_at if check.counts else 0), messages)
    return result
