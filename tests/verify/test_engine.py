"""The SQL of rules over the rows of one run: the same rows as Spark's, without its planner."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.play.campaign import play_seed
from minicluster.faults import Faults
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import Report, verify
from minicluster.verify.engine.parser import SqlError, parse_expression, parse_query
from minicluster.verify.engine.queries import plan_of
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.rules import BY_ID, RULES, Rule
from minicluster.verify.spark import routing
from minicluster.verify.spark.fold_job import Item, Judged, Task, _judge_one
from tests.verify import test_spark_rules, test_trace_rules
from tests.verify.damage import Damage
from tests.verify.damaged_runs import FILE_DAMAGE, saved_run
from tests.verify.spark_plans import report_of_plans
from tests.verify.test_damaged_logs import SOURCES
from tests.verify.test_damaged_runs import damaged
from tests.verify.test_spark_rules import KAFKA_LOGS
from tests.verify.trace_cases import b2_bad, c6_near

COLUMNS = {"t": ("k", "s", "v", "a"), "u": ("k", "w")}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "t": [(1, 1, None, [1, 2]), (1, 2, 5, [2, 2, 3]), (1, 3, None, None), (2, 1, 7, [])],
    "u": [(1, "one"), (3, "three"), (None, "none")],
}
# Query -> its rows as Spark 4.3 gives them (ANSI mode).
QUERIES: dict[str, list[tuple[Any, ...]]] = {
    "select k, last(v, true) over (partition by k order by s rows between unbounded preceding "
    "and current row) as v from t": [(1, None), (1, 5), (1, 5), (2, 7)],
    "select k, max(v) over (partition by k order by s rows between unbounded preceding "
    "and 1 preceding) as v from t": [(1, None), (1, None), (1, 5), (2, None)],
    "select s, lag(s) over w as p, lead(s) over w as n from t where k = 1 "
    "window w as (partition by k order by s)": [(1, None, 2), (2, 1, 3), (3, 2, None)],
    "select s, count(*) over (order by s) as c from t": [(1, 2), (2, 3), (3, 4), (1, 2)],
    "select s, min(v) over (partition by k order by s range between unbounded preceding "
    "and 1 preceding) as m from t": [(1, None), (2, None), (3, 5), (1, None)],
    "select k, count(v) as c, count_if(v > 5) as i, max_by(s, v) as m from t group by k": [
        (1, 1, 0, 2),
        (2, 1, 1, 1),
    ],
    "select k from t group by k having count(distinct s) = 1": [(2,)],
    "select t.s, u.w from t left join u on t.k = u.k and t.s < 3": [
        (1, "one"),
        (2, "one"),
        (3, None),
        (1, None),
    ],
    "select s, explode(a) as x from t where k = 1": [(1, 1), (1, 2), (2, 2), (2, 2), (2, 3)],
    "select k, inline(transform(a, x -> named_struct('x', x, 'y', x + s))) from t where s = 1": [
        (1, 1, 2),
        (1, 2, 3),
    ],
    "select distinct k from t where k in (select k from u)": [(1,)],
    "select k, s from t where k = 2 union all select k, 0 from u where k is null": [
        (2, 1),
        (None, 0),
    ],
    "select * except (a, v), case when v is null then 'none' when v > 5 then 'high' end as c "
    "from t": [(1, 1, "none"), (1, 2, None), (1, 3, "none"), (2, 1, "high")],
}
# Expression over a row of t with k = 1, v null and a = [2, 2, 3] -> its value in Spark.
EXPRESSIONS: dict[str, Any] = {
    "v > 1": None,
    "v > 1 and false": False,
    "v > 1 or true": True,
    "not (v > 1)": None,
    "v <=> null": True,
    "k in (2, null)": None,
    "k not in (2, 3)": True,
    "coalesce(v, k + 1) * 3 - 1": 5,
    "size(null)": None,
    "array_except(a, array(3))": [2],
    "array_union(a, array(4, 3))": [2, 3, 4],
    "array_intersect(array(3, 2, 2), a)": [3, 2],
    "array_contains(a, 7)": False,
    "array_contains(array(1, null), 7)": None,
    "array_position(a, 3)": 3,
    "get(a, 9)": None,
    "get(a, cast(array_position(a, 5) as int) - 1)": None,
    "try_element_at(a, 1)": 2,
    "array_max(array(1, null))": 1,
    "exists(a, x -> x > 2)": True,
    "exists(a, x -> x > v)": None,
    "forall(filter(a, x -> x < 3), x -> x = 2)": True,
    "arrays_overlap(a, array(9))": False,
    "greatest(v, k)": 1,
    "concat_ws(' ', k, v, 'x')": "1 x",
    "split('a@b', '@')[0]": "a",
    "try_cast('x' as int)": None,
    'from_json(\'{"a":[{"b":7,"c":"d"}]}\', \'a array<struct<b: int, c: string>>\').a[0].b': 7,
    "try_element_at(from_json('{\"1\":[4]}', 'map<string, array<bigint>>'), cast(k as string))": [
        4
    ],
    "get_json_object('{\"a\":[{\"b\":3}]}', '$.a[0].b')": "3",
}


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_gives_the_rows_that_spark_gives(text: str) -> None:
    rows = plan_of(parse_query(text), COLUMNS).rows(ROWS.__getitem__)

    assert [tuple(row) for row in rows] == QUERIES[text]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_has_the_value_that_spark_gives(text: str) -> None:
    parse_expression(text)
    plan = plan_of(parse_query(f"select {text} as x from t"), COLUMNS)

    assert plan.rows(lambda name: [(1, 1, None, [2, 2, 3])]) == [(EXPRESSIONS[text],)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("select k from", "too early"),
        ("select k frm t", "'from' is missing"),
        ("select nothing from t", "no column nothing"),
        ("select k from nowhere", "no table nowhere"),
        ("select f(k) from t", "no function f"),
        ("select k from t where k = ?", "nothing begins with '?'"),
    ],
)
def test_an_error_in_a_query_names_its_place(text: str, word: str) -> None:
    with pytest.raises(SqlError) as raised:
        plan_of(parse_query(text), COLUMNS)

    assert word in str(raised.value)


def check(spark: Any, paths: list[Path], rules: Sequence[Rule] = RULES) -> Report:
    """Workers, each with a share of the views, find what Spark's own plans find."""
    planned = report_of_plans(spark, paths, rules)
    folded = verify(*paths, rules=[rule.id for rule in rules])

    for one, two in zip(folded.rules, planned.rules, strict=True):
        assert one == two
    return folded


@pytest.mark.slow
@pytest.mark.spark
def test_workers_find_what_spark_plans_find(tmp_path: Path, spark: object) -> None:
    paths = [b2_bad().write(tmp_path / "bad"), c6_near().write(tmp_path / "near")]

    report = check(spark, paths, [BY_ID[rule] for rule in ("B2", "C6", "E10")])

    assert [finding.rule for finding in report.findings] == ["B2"]


def test_a_long_run_is_judged_by_shares_of_its_views(tmp_path: Path) -> None:
    """Each view is in one share, and the shares find together what one worker finds."""
    for case in (b2_bad, c6_near):
        path = case().write(tmp_path / case.__name__)
        whole = checks_of(path, 0, 1)
        shares = [checks_of(path, share, 3) for share in range(3)]

        assert sorted(one for share in shares for one in share) == whole
        assert sum(map(bool, shares)) > 1, "several have something to do"


def checks_of(path: Path, share: int, shares: int) -> list[Any]:
    task = Task(RULES, DEFAULT_LIMITS).pickled()
    judged: Judged = pickle.loads(_judge_one(task, Item(path, "run", share, shares).pickled()))
    assert not judged.crashes
    return sorted(judged.checks)


@pytest.mark.slow
@pytest.mark.spark
def test_expressions_and_queries_are_spark_s(spark: Any) -> None:
    table = "select * from values (1, 1, cast(null as int), array(2, 2, 3)) as t(k, s, v, a)"
    for text, value in EXPRESSIONS.items():
        (row,) = spark.sql(f"with t as ({table}) select {text} as x from t").collect()
        assert row.x == value, text


@pytest.mark.slow
@pytest.mark.spark
def test_workers_find_in_chaos_what_spark_plans_find(tmp_path: Path, spark: object) -> None:
    """Every other run has a fault of the zoo. MINICLUSTER_CHAOS_RUNS=200 takes two hours."""
    count = int(os.environ.get("MINICLUSTER_CHAOS_RUNS", "6"))
    zoo = [field.metadata["zoo"] for field in fields(Faults)]
    paths = []
    for seed in range(1, count + 1):
        faults = () if seed % 2 else (zoo[seed // 2 % len(zoo)],)
        path = play_seed(seed, faults, runs=tmp_path).path
        assert path is not None
        paths.append(path)

    assert len([rule for rule in check(spark, paths).rules if rule.looked_at]) > 80


@pytest.mark.slow
@pytest.mark.spark
def test_workers_find_in_damaged_copies_what_spark_plans_find(
    tmp_path: Path, spark: object
) -> None:
    paths = []
    for source in SOURCES:
        batches = read_run(KAFKA_LOGS / source, source).committed
        for seed in range(20):
            paths.append(tmp_path / f"{source}-{seed}")
            Damage(batches, f"{source}/{seed}").write(paths[-1])
    whole = saved_run(tmp_path / "whole")
    for name, damage in FILE_DAMAGE.items():
        paths.append(damaged(whole, tmp_path / name, damage))

    assert len({finding.rule for finding in check(spark, paths).findings}) > 10


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("shares", [False, True])
def test_workers_find_what_spark_plans_find_in_every_crafted_log(
    shares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    paths = []
    for cases in (test_spark_rules.EVERY_CASE, test_trace_rules.EVERY_CASE):
        for name, case in cases.items():
            case().write(tmp_path / name)
            paths.append(tmp_path / name)
    if shares:
        monkeypatch.setattr(routing, "SHORT_LOG_BYTES", -1)

    check(spark, paths)
