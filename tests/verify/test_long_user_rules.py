"""Rules of a user's over long logs: what one worker finds that holds the whole log."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from minicluster.log import heads
from minicluster.log.directory import locate
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import Report, verify
from minicluster.verify.engine.checks import Views
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.online.share import Share
from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.spark import fold_job, routing
from minicluster.verify.spark.facts import Facts
from minicluster.verify.spark.fold_job import Item, Task
from minicluster.verify.spark.long import fact_source, spooled_folds
from minicluster.verify.spark.long.fact_source import fact_rows
from minicluster.verify.spark.long.logs import LongLog, long_log
from minicluster.verify.spark.long.quorums import _committed, compare_logs
from minicluster.verify.spark.long.spooled_folds import Missing, SpooledRows, fold_share, read_by
from minicluster.verify.spark.schemas import SCHEMAS
from tests.bench.verify_log import write_long_log
from tests.verify.build import change, cluster
from tests.verify.damage import Damage
from tests.verify.test_long_quorums import quorum_of
from tests.verify.test_spark_rules import EVERY_CASE, KAFKA_LOGS, RUNS

TABLES = ("partitions", "brokers", "topics", "batches", "transactions")
RULES = """
from minicluster.verify.rules import BY_ID
from minicluster.verify.rules.model import Check, Evidence, Rule, View

def everything(rows):  # nobody can see beforehand that it reads topics
    brokers = {}
    for row in rows("broker_states"):
        brokers[row["broker"]] = row["active"], row["next_end"] and row["next_end"].op
        if row["kind"] == "Register" and len(rows("topics")) + rows("topics")[:1].count(None):
            partitions = sum(topic["kind"] == "Partition" for topic in rows("topics"))
            yield {"offset": row["offset"], "broker": row["broker"], "number": partitions}
    for number, row in enumerate(rows("partition_states")):
        if number % 7 == 3 or row["offset"] == rows("partition_states")[-1]["offset"]:
            yield {"offset": row["offset"], "topic": row["topic"], "part": row["part"],
                   "broker": row["leader"], "number": brokers.get(row["leader"], (0, 0))[1]}

def shrinks(rows):
    counts = {}
    for row in rows("partition_states"):
        key = row["topic_id"], row["part"]
        counts[key] = counts.get(key, 0) + (row["shrank"] or False)
        yield {"offset": row["offset"], "topic": row["topic"], "part": row["part"],
               "broker": None, "number": counts[key]}

COLUMNS = ("offset", "topic", "part", "broker", "number")
VIEWS = (
    View(name="folded", fold=everything, columns=COLUMNS),
    View(name="shrinking", fold=shrinks, columns=COLUMNS, reads=("partition_states",),
         key=("topic_id", "part")),
    View(name="of_a_fold", sql="select * from shrinking where number > 0"),
    View(name="of_all", sql='''select offset, topic, part, count(*) over (order by offset, part)
        as number from partition_states where change'''),
    View(name="wrong", sql="select nothing from partition_states"),
    View(name="divides", fold=lambda rows: [1 / (len(rows("brokers")) * 0)], columns=COLUMNS),
    View(name="fails", fold=lambda rows: [1 / len(rows("nowhere"))], columns=COLUMNS),
)

def rule(id, view, bad, broker="null"):
    return Rule(id=id, title="", statement="", source="", evidence=Evidence.LOG, checks=(
        Check(view=view, when="number is not null", bad=bad, message="{broker} {number}",
              broker=broker, number="number"),))

RULES = (
    rule("U1", "folded", "number > 0", "broker"),
    rule("U2", "shrinking", "number > 1"),
    rule("U3", "of_a_fold", "number > 1"),
    rule("U4", "of_all", "number > 2"),
    rule("U5", "wrong", "true"),
    rule("U6", "fails", "true"),
    rule("U7", "divides", "true"),
    *(
        Rule(id="U" + one.id, title="", statement="", source="", evidence=one.evidence,
             checks=tuple(check for check in one.checks if check.view.endswith("_states")),
             promised_from=one.promised_from)
        for one in map(BY_ID.get, ("A1", "A4", "A8", "C5", "D1", "E11", "E17", "E20", "E30", "E34"))
    ),
)
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "rules.py"
    path.write_text(RULES)
    return path


def as_long(path: Path) -> LongLog:
    """A log as it is judged if it is long."""
    logs = locate(path).logs
    long = long_log(path, path.name, logs[0]) if len(logs) == 1 else None
    if long is None:
        quorum = quorum_of(path)
        item = pickle.dumps((quorum, DEFAULT_LIMITS, None))
        long = _committed(quorum, pickle.loads(compare_logs(item)))
    assert long is not None
    return long


def in_log_order(table: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    names = SCHEMAS[table].names
    order = [name for name in ("node", "pos", "offset", "topic_id", "part") if name in names]
    places = [names.index(name) for name in order]
    return sorted(rows, key=lambda row: [(row[one] is not None, row[one]) for one in places])


def check_facts(path: Path) -> None:
    run, log = read_run(path, path.name), as_long(path)
    facts = Facts()
    facts.add(run)
    for table in TABLES:
        shares = [Share(n, 3) for n in range(3)] if table == "partitions" else [None]
        found = [
            row
            for share in shares
            for rows in fact_rows(log, table, share, DEFAULT_LIMITS)
            for row in rows
        ]
        assert in_log_order(table, found) == facts._rows[table], (path.name, table)


def test_shares_have_the_facts_of_the_whole_log_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_source, "CHUNK_ROWS", 3)
    paths = [KAFKA_LOGS / name for name in RUNS]
    for name, case in EVERY_CASE.items():
        case().write(tmp_path / name)
        paths.append(tmp_path / name)
    batches = read_run(KAFKA_LOGS / "jbod", "jbod").committed
    for seed in range(8):
        Damage(batches, f"facts-{seed}").write(tmp_path / f"damaged-{seed}")
        paths.append(tmp_path / f"damaged-{seed}")
    for path in paths:
        check_facts(path)


def compare(paths: Sequence[Path], rules: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report on logs that count as long, which is that of workers who hold each."""
    with monkeypatch.context() as patch:
        patch.setattr(routing, "SHORT_LOG_BYTES", 1 << 40)
        whole = verify(*paths, rules=["E10"], rules_from=rules)
        patch.setattr(routing, "SHORT_LOG_BYTES", -1)
        shared = verify(*paths, rules=["E10"], rules_from=rules)
    for one, two in zip(whole.rules, shared.rules, strict=True):
        assert (one.id, one.by_run, one.reasons) == (two.id, two.by_run, two.reasons)
        assert one.findings == two.findings, one.id
        assert (one.looked_at, one.not_promised) == (two.looked_at, two.not_promised), one.id
    return shared


@pytest.mark.spark
def test_rules_of_a_file_find_in_a_long_log_what_they_find_in_a_short_one(
    tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    log = cluster()
    for isr in ((1, 2), (1,), (1, 2), (1, 2, 3), (1, 3)):
        log = log.op(change(isr, leader=isr[0]))
    held = []
    judge_runs = fold_job.judge_runs

    def noted(spark: Any, items: Sequence[Item], task: Task, *more: Any) -> Any:
        held.append(({item.name for item in items}, [rule.id for rule in task.rules]))
        return judge_runs(spark, items, task, *more)

    monkeypatch.setattr(fold_job, "judge_runs", noted)
    report = compare([log.write(tmp_path / "log")], rules, monkeypatch)

    assert report.rule("U1").looked_at == 3 and len(report.rule("U1").findings) == 3
    assert [finding.message for finding in report.rule("U2").findings][-1:] == ["None 3"]
    assert len(report.rule("U4").findings) == 3
    assert "no column nothing" in report.rule("U5").reasons[0]
    assert "KeyError: 'nowhere'" in report.rule("U6").reasons[0]
    assert "ZeroDivisionError: division by zero" in report.rule("U7").reasons[0]
    held_rules = [rules for names, rules in held[1:] if names]
    assert held_rules == [["U3"]], "SQL over a fold alone needs the whole log"


@pytest.mark.slow
@pytest.mark.spark
def test_rules_of_a_file_find_in_every_long_log_what_they_find_in_short_ones(
    tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    paths = [KAFKA_LOGS / name for name in RUNS]
    for name, case in list(EVERY_CASE.items())[::6]:
        case().write(tmp_path / name)
        paths.append(tmp_path / name)
    batches = read_run(KAFKA_LOGS / "jbod", "jbod").committed
    for seed in range(4):
        Damage(batches, f"rules-{seed}").write(tmp_path / f"damaged-{seed}")
        paths.append(tmp_path / f"damaged-{seed}")

    report = compare(paths, rules, monkeypatch)

    assert len([rule for rule in report.rules if rule.looked_at]) > 12


def test_the_tables_that_a_fold_reads_are_found_without_rows() -> None:
    def reads(rows: Any) -> Iterator[dict[str, object]]:
        yield from ({"offset": row["offset"]} for row in rows("brokers"))
        rows("topics")[0]

    assert read_by(View(name="v", fold=reads)) == ["brokers", "topics"]
    assert read_by(View(name="v", fold=reads, reads=("brokers",))) == ["brokers"]


def folding(view: View, rows: Iterator[Any]) -> Any:
    """The result of a worker for the rows of a fold's one table."""
    check = Check(view=view.name, when="true", bad="number > 8", message="", number="number")
    rule = Rule(id="MY1", title="", statement="", source="", evidence=Evidence.LOG, checks=(check,))
    work = fold_job._Work((rule,), {view.name: view}, DEFAULT_LIMITS,
        Views({view.name: view}, {}), {view.name: ((0, 0),)}, frozenset())  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spooled_folds, "_prepare", lambda _: work)
        (done,) = fold_share(b"", view.name, ("brokers",), rows)
    return pickle.loads(done)


class Row(tuple[Any, ...]):
    """A row as Spark has it."""

    __fields__ = ("offset", "broker")


def tagged(number: int) -> Iterator[Any]:
    for offset in range(number):
        row = Row((offset, offset % 10))
        yield type("Tagged", (), {"source": 0, "__getitem__": lambda self, name, row=row: row})()


def test_a_fold_that_reads_more_than_was_sent_is_sent_more() -> None:
    def reads(rows: Any) -> Iterator[dict[str, object]]:
        yield from (rows("topics")[0] for row in rows("brokers") if row["broker"] == 3)

    assert folding(View(name="v", fold=reads, columns=("number",)), tagged(9)) == Missing("topics")


def of_brokers(rows: Any) -> Iterator[dict[str, object]]:
    """A fold that keeps a number for each broker and reads its rows twice."""
    counts = dict.fromkeys({row["broker"] for row in rows("brokers")}, 0)
    for row in rows("brokers"):
        counts[row["broker"]] += 1
        yield {
            "offset": row["offset"],
            "topic": None,
            "part": None,
            "number": counts[row["broker"]],
        }


def offsets_of_brokers(rows: Any) -> Iterator[dict[str, object]]:
    """The like, without a finding."""
    yield from ({**row, "number": 0} for row in of_brokers(rows))


COLUMNS = ("offset", "topic", "part", "number")


def test_rows_of_a_fold_lie_in_a_file(tmp_path: Path) -> None:
    rows = SpooledRows(tmp_path / "rows")
    rows.fill({"n": number} for number in range(2_500))

    assert len(rows) == 2_500 and [row["n"] for row in rows] == list(range(2_500))
    assert (rows[1_000]["n"], rows[-1]["n"], [row["n"] for row in rows[998:1_003:2]]) == (
        1_000, 2_499, [998, 1_000, 1_002],
    )  # fmt: skip
    with pytest.raises(IndexError):
        rows[2_500]
    ((place, counts, found),) = folding(
        View(name="v", fold=of_brokers, columns=COLUMNS), tagged(90)
    )
    assert (place, counts, len(found)) == ((0, 0), (90, 0), 10)


def most_memory(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_for_facts_does_not_grow_with_the_length_of_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 64 << 10)
    monkeypatch.setattr(fact_source, "CHUNK_ROWS", 500)
    most = []
    for records in (1_000, 3_000, 9_000):
        log = as_long(write_long_log(records, tmp_path / str(records)))

        def read(log: LongLog = log, records: int = records) -> None:
            chunks = fact_rows(log, "partitions", Share(0, 1), DEFAULT_LIMITS)
            assert sum(map(len, chunks)) >= records

        most.append(most_memory(read))

    assert most[2] < 1.2 * most[1]


def test_memory_for_a_fold_does_not_grow_with_the_number_of_its_rows() -> None:
    view = View(name="v", fold=offsets_of_brokers, columns=COLUMNS)
    folding(view, tagged(10))
    short, long = (most_memory(lambda n=n: folding(view, tagged(n))) for n in (4_000, 16_000))

    assert long < 1.2 * short
