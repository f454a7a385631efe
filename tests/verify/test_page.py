"""The page of a run: time, what was done, lanes, causes of findings, links both ways."""

from __future__ import annotations

import html
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from minicluster.actors.play.player import play
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.protocol import records as r
from minicluster.scenario import load_scenario, parse_scenario
from minicluster.values import replace
from minicluster.verify import Finding, Report, Verdict, verify
from minicluster.verify.evidence.operations import operations_of
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.source import Source
from minicluster.verify.reporting.causes import Chains
from minicluster.verify.reporting.page import DRAWN_PARTITIONS
from minicluster.verify.reporting.rejections import rejections_of
from minicluster.verify.reporting.report_data import RuleResult, RunSummary
from minicluster.verify.reporting.scale import LEFT, RIGHT, WIDTH, Clock, Scale
from minicluster.verify.reporting.story import story_of
from minicluster.verify.reporting.subjects import SUBJECTS
from minicluster.verify.reporting.timeline import timeline
from minicluster.verify.rules.every import BY_ID
from tests.verify.handwritten.log import OTHER_TOPIC, cluster, partition
from tests.verify.handwritten.run import RunBuilder

NIGHT = parse_scenario(
    """
name: night
cluster: {controllers: 3, brokers: 3, seed: 7}
faults: [Z01, Z02]
steps:
  - {do: create_topic, name: orders, min_isr: 2}
  - {do: create_topic, name: orders, may_fail: true}
  - {after: 1s, do: cut, src: follower(orders-0), dst: controllers, lasting: 40s}
  - {do: produce, topic: orders, rate: 5, lasting: 60s}
  - {after: 90s, do: wait}
"""
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report as Spark makes it, of a run that the online rules ended."""
    played = play(NIGHT, runs=tmp_path_factory.mktemp("runs"))
    assert played.failure is not None and played.failure.kind == "violated"
    run = read_run(played.path, played.path.name)
    [offset] = [
        entry.offset
        for operation in operations_of(run.committed)
        for entry in operation.entries
        if getattr(entry.record, "isr", None) is not None and entry.offset > 40
        and len(entry.record.isr) == 3  # type: ignore[attr-defined]
    ]  # fmt: skip
    request = story_of(run).written[offset]
    result = RuleResult(
        rule=BY_ID["A3"], verdict=Verdict.INVALID, looked_at=9, not_promised=0, reasons=(),
        findings=(
            Finding(
                run=run.name, offset=offset, rule="A3", topic="orders", partition=0, broker=3,
                message=f"request {request} lets broker 3 enter the ISR [1, 2, 3] at {offset}",
                request=request,
            ),
            *(
                Finding(run=run.name, offset=offset - n, rule="A3", topic="orders", partition=0,
                        message=f"broker {n} is the same again")
                for n in (2, 3, 4)
            ),
        ),
    )  # fmt: skip
    return Report(
        verdict=Verdict.INVALID,
        rules=(result,),
        runs=(RunSummary.of(run),),
        reasons=(),
        sources=(Source(played.path, run.name, DEFAULT_LIMITS, is_long=False),),
    )


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return report.to_html()


def test_every_link_leads_somewhere(page: str) -> None:
    ids = set(re.findall(r'id="([^"]+)"', page))
    links = re.findall(r'href="#([^"]+)"', page)
    assert links and set(links) <= ids
    marks = re.findall(r'<a href="#(f1-A3-\d)"><g class="mark">', page)
    assert len(set(marks)) == 4, "from each mark to its finding"
    records = re.findall(r'<a href="#(r1-\d+)">offset', page)
    for record in records:
        row = page[page.index(f'id="{record}"') :].partition("</tr>")[0]
        assert 'href="#f1-A3-' in row, "and from the record back to its finding"


def test_findings_of_one_kind_are_grouped_with_a_count(page: str) -> None:
    assert page.count('<div class="case">') == 2
    assert "2 more like it" in page


def test_a_finding_has_the_events_that_lead_to_it(report: Report) -> None:
    [source] = report.sources
    run = source.read()
    assert run is not None
    finding = next(one for one in report.findings if one.message.startswith("request"))
    chains = Chains(run, report.findings)
    causes = chains.of(finding)
    kinds = [cause.kind for cause in causes]
    assert kinds[-1] == "here" and kinds.count("fault") == 2
    texts = "\n".join(cause.text for cause in causes)
    assert "brokerId=3 brokerEpoch=" in texts and "fenced=1" in texts, "what made it wrong"
    assert "cut 3→101 3→102 3→103 (step 3)" in texts
    assert "NoOp" not in texts
    assert re.match(r"the AlterPartition of node \d to node \d+, sent at", chains.message(finding))
    text = report.to_text(every_rule=False, width=400)
    assert "planted fault Z01 acts" in text and chains.message(finding) in text
    around = report.around(finding)
    assert around[-1][0] == finding.offset and all("NoOp" not in line for _, line in around)


def test_a_fault_that_acts_again_and_again_is_one_line_of_the_chain(report: Report) -> None:
    [source] = report.sources
    run = source.read()
    assert run is not None
    finding = next(one for one in report.findings if one.message.startswith("request"))
    chains = Chains(run, report.findings)
    [hit] = [hit for hit in chains.story.hits if hit[1] == "planted fault Z01 acts"]
    chains.story.hits += [hit] * 9
    faults = [cause.text for cause in chains.of(finding) if cause.kind == "fault"]
    assert faults == ["planted fault Z02 acts", "planted fault Z01 acts, 10 times until here"]


def test_a_held_report_shows_the_whole_story_when_the_folder_of_its_run_is_gone(
    report: Report, tmp_path: Path
) -> None:
    """As that of ``mini_cluster.verify()``, whose page is written once the test has failed."""
    [summary] = report.runs
    copy = Path(shutil.copytree(summary.path, tmp_path / summary.name))
    events = pq.read_table(copy / "trace" / "partition_event.parquet").to_pylist()
    row = next(one for one in events if one["kind"] == "append" and one["vt"] > 5_000)
    finding = Finding(
        run=summary.name, offset=-1, rule="F16", topic="orders", partition=0, broker=row["broker"],
        message=f"broker {row['broker']} appended records", event=row["seq"],
    )  # fmt: skip
    result = RuleResult(
        rule=BY_ID["F16"], verdict=Verdict.INVALID, looked_at=9, not_promised=0, reasons=(),
        findings=(finding, replace(finding, message="broker 2 appended records", event=9)),
    )  # fmt: skip
    held = Report(
        verdict=Verdict.INVALID, rules=(result,), runs=(replace(summary, path=str(copy)),),
        reasons=(), sources=(Source(copy, summary.name, DEFAULT_LIMITS, is_long=False),),
    )  # fmt: skip
    held.hold()
    shutil.rmtree(copy)
    kept = tmp_path / "kept"
    kept.mkdir()
    held.leave(kept)
    page = (kept / "report.html").read_text()
    assert str(kept) in page and str(copy) not in page, "where the run is now"
    assert 'class="band net"' in page and 'class="op ok"' in page, "what the trace shows"
    at = f"{row['vt'] / 1000:g}s"
    assert f"(event {row['seq']}, at {at})" in page
    assert re.search(r'<a href="#f1-F16-\d"><g class="mark">', page), "a mark without an offset"
    text = held.to_text(every_rule=False, width=400)
    assert "  event  partition" in text and "planted fault" not in text
    assert "1 more like it: orders-0, broker" in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_half_a_page_is_not_left_on_a_full_disk(report: Report, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.symlink_to("/dev/full")

    with pytest.raises(OSError, match="No space left on device") as raised:
        report.leave(tmp_path)

    assert raised.value.filename == str(page) and list(tmp_path.iterdir()) == []


def test_the_page_shows_what_was_done(page: str) -> None:
    steps = dict(re.findall(r'<tr class="(\w*)" id="step-(\d)">', page))
    assert "not_applicable" in steps, "the step that was not reached"
    assert "TOPIC_ALREADY_EXISTS" in page, "what may_fail let pass"
    assert ">src: 3, dst: 101, 102, 103</td>" in page, "whom the selectors named"
    assert "Planted fault <b>Z01</b> acted" in page
    assert "name: night" in page, "the scenario's text"
    assert "The scenario did not go as written" in page


def test_the_cluster_has_lanes_over_time(page: str) -> None:
    cluster = page[page.index('<figure class="line">') :].partition("</figure>")[0]
    for lane in ("controller", "broker 1", "broker 2", "broker 3", "client"):
        assert f">{lane}</text>" in cluster
    assert re.search(r">10\d · epoch 1</text>", cluster)
    assert 'class="band net"' in cluster and "broker 3 fenced" in cluster
    assert 'class="op ok"' in cluster
    assert re.search(r'class="axis"[^>]*>\d+s</text>', page)


def test_an_idle_hour_takes_no_room(report: Report) -> None:
    [source] = report.sources
    run = source.read()
    assert run is not None
    busy = list(range(0, 10_000, 100))
    scale = Scale(Clock(run), [*busy, 3_600_000, 3_600_100], 3_600_200)
    assert scale.breaks == [(9_900, 3_600_000)]
    assert scale.at(9_900) > LEFT + 0.7 * (WIDTH - LEFT)
    places = [scale.at(moment) for moment in range(0, 3_600_200, 997)]
    assert places == sorted(places) and places[0] == LEFT
    assert scale.at(3_600_200) == WIDTH - RIGHT


def test_what_lasts_to_the_end_of_the_log_lasts_to_the_end_of_the_run(report: Report) -> None:
    """The last record may be long before, so that the state it makes has room."""
    [source] = report.sources
    run = source.read()
    assert run is not None
    end = run.extent.end_offset
    scale = Scale(Clock(run), [], 3_600_200)
    assert scale.of(end - 1) < scale.of(end) == WIDTH - RIGHT


def test_a_failed_scenario_is_no_broken_promise(report: Report) -> None:
    kept = replace(report.rules[0], verdict=Verdict.VALID, findings=())
    page = replace(report, rules=(kept,)).to_html()
    assert "A scenario did not go as written; no promise was found broken." in page
    assert "At least one promise is broken." in report.to_html()


# A long run with many partitions.

BUSY = parse_scenario(
    """
name: busy
cluster: {controllers: 1, brokers: 3, seed: 11}
steps:
  - {do: create_topic, name: orders, partitions: 30, replicas: 2, min_isr: 2}
  - {do: create_topic, name: single, partitions: 1, assignment: [[2]]}
  - {until: fully_in_sync(orders-29), within: 30s}
  - {do: kill, node: broker(2)}
  - {after: 30s, do: restart, node: broker(2)}
  - {until: fully_in_sync(orders-29), within: 60s}
"""
)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Report:
    played = play(BUSY, runs=tmp_path_factory.mktemp("runs"))
    return verify(played.path, engine="process")


@pytest.fixture(scope="module")
def busy_page(busy: Report) -> str:
    return busy.to_html()


def test_the_worst_twenty_partitions_are_drawn_and_one_line_tells_of_the_others(
    busy_page: str,
) -> None:
    drawn = re.findall(r"<figcaption>([\w-]+)<small>([^<]+)</small>", busy_page)
    assert drawn[0][0] == "Cluster" and len(drawn) == 1 + DRAWN_PARTITIONS
    assert drawn[1][0] == "single-0" and "without a leader for 20.086s" in drawn[1][1]
    others = drawn[2:]
    assert all("under min ISR for" in small for _, small in others), "the worst come first"
    (left,) = re.findall(r"<summary>(\d+) more partitions not drawn: ([^<]+)</summary>", busy_page)
    assert left[0] == "11" and left[1].endswith("."), left


def test_a_partition_is_under_min_isr_by_what_is_in_effect(tmp_path: Path) -> None:
    """Partition.effectiveMinIsr: at most the replicas, and a leader's own value before all's."""
    log = cluster().topic(partition((1,), topic_id=OTHER_TOPIC), name="other", topic_id=OTHER_TOPIC)
    seen = []
    for broker, value in ("", "3"), ("1", "2"):
        log.op(
            r.ConfigRecord(
                resource_type=4, resource_name=broker, name="min.insync.replicas", value=value
            )
        )
        run = read_run(log.write(tmp_path / value), "log")
        seen.append({line.name: line.spans[-1].min_isr for line in timeline(run).partitions})

    assert seen == [{"orders-0": 3, "other-0": 1}, {"orders-0": 2, "other-0": 1}]


def test_a_valid_run_shows_what_was_done_and_its_timelines_before_its_rules(
    busy: Report, busy_page: str
) -> None:
    assert busy.valid
    headings = re.findall(r"<h2>([^<]+)</h2>", busy_page)
    assert headings == ["busy", "What happened", "Timelines"]
    assert re.search(r"<code class=\"command\">\S*minicluster replay ", busy_page)
    assert "1 disturbance</summary>" in busy_page and "<td>kill 2 (step 4)</td>" in busy_page


# A run in which a controller rejects.


@pytest.fixture(scope="module")
def fenced_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    story = load_scenario(Path(__file__).parents[2] / "examples/fenced_follower.yaml")
    played = play(story, runs=tmp_path_factory.mktemp("a run"))
    return verify(played.path, engine="process").to_html()


def test_the_page_says_what_was_played_and_how_to_play_it_again(fenced_page: str) -> None:
    assert "<title>valid – a fenced follower stays out of the ISR</title>" in fenced_page
    assert "<h2>a fenced follower stays out of the ISR</h2>" in fenced_page
    assert "<p>KIP-841. A follower falls out of the ISR, " in fenced_page
    (repeat,) = re.findall(r'<code class="command">([^<]+)</code>', fenced_page)
    command, word, run = shlex.split(html.unescape(repeat))
    assert command.endswith("minicluster") and word == "replay" and Path(run).is_dir()
    levels = [int(level) for level in re.findall(r"<h(\d)", fenced_page)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


def test_what_happened_stands_between_the_steps_and_rejections_on_the_axis(
    fenced_page: str,
) -> None:
    rows = re.findall(r'<tr class="[^"]*" id="(?:step-|h1-)[^>]*>(.*?)</tr>', fenced_page)
    texts = [re.sub(r"<[^>]+>", "|", row) for row in rows]
    (fenced,) = {found[1] for text in texts if (found := re.search(r"broker (\d) fenced", text))}
    order = [
        next(n for n, text in enumerate(texts) if re.search(wanted, text))
        for wanted in (
            "create_topic name=orders", r"orders-0: leader \d, ISR \[\d, \d, \d\]",
            r"until follower\(orders-0\) not in isr", r"orders-0: ISR \[.*\] → \[\d, \d\]",
            f"broker {fenced} fenced", r"controller 10\d rejects it, \d+ times until \d",
            f"broker {fenced} unfenced",
        )
    ]  # fmt: skip
    assert order == sorted(order)
    rejected = texts[order[-2]]
    assert f"INELIGIBLE_REPLICA, {fenced} is fenced" in rejected
    assert f"IneligibleReplica[replicaId={fenced}, reason=fenced]" in rejected, "Kafka's sentence"
    cluster = fenced_page[fenced_page.index('<figure class="line">') :].partition("</figure>")[0]
    (row,) = re.findall(r'<a href="#(h1-\d+)"><g class="rejection"><title>', cluster)
    assert f'id="{row}"' in fenced_page and ">rejected</text>" in cluster


def test_a_rejection_is_told_without_what_is_damaged_beside_it(tmp_path: Path) -> None:
    built = RunBuilder(cluster()).committed().alter_partition(1, (1, 2))
    built.rpc("AlterPartition", 1, request="{").rpc("AlterPartition", 1, request="7")
    refusal = {"node": 101, "api": "AlterPartition", "broker": 1, "topic": "orders", "part": 0}
    said = {"error": "INELIGIBLE_REPLICA", "reason": "broker epoch mismatch", "message": "…"}
    for request in (1, 2, 3):
        built.row("refusal", {**refusal, **said, "rpc": request})
    run = read_run(built.write(tmp_path / "run"), "run")
    first, second = rejections_of(run)
    assert (first.isr, first.count, second.isr, second.count) == ((1, 2), 1, None, 2)


def test_a_healthy_broker_has_a_colour_of_its_own_and_a_narrow_screen_is_told_to_scroll(
    fenced_page: str,
) -> None:
    style = fenced_page.partition("</style>")[0]
    fills = dict(re.findall(r"rect\.([\w.]+) \{ fill: var\(--([\w-]+)\)", style))
    partition = {fills[name] for name in ("leader", "isr", "elr", "out")}
    of_nodes = {fills[name] for name in ("active", "controller", "controller.other")}
    assert len(partition) == 4 and len(of_nodes) == 3 and not partition & of_nodes
    narrow = style[style.index("@media (max-width: 700px)") :]
    assert ".sideways { display: block; }" in narrow and "::-webkit-scrollbar" in narrow
    assert "The charts are wider than this screen" in fenced_page


def test_the_page_says_why_rules_had_nothing_to_check(fenced_page: str) -> None:
    summed_up = (
        r"(\d+) rules checked [\d,]+ times, none broken; (\d+) had nothing to check in this run;"
    )
    (numbers,) = re.findall(rf"{summed_up} (\d+) are for ZooKeeper", fenced_page)
    (of_programs,) = re.findall(r"(\d+) are for runs with programs inside", fenced_page)
    judged, *others = map(int, (*numbers, of_programs))
    assert judged + sum(others) == len(BY_ID)
    assert fenced_page.count('href="#without"') == 2, "from both numbers to the reasons"
    reasons = fenced_page[fenced_page.index('<details id="without"') :].partition("</details>")[0]
    ids = set(re.findall(r">([A-Z]\d+)</span>", reasons))
    assert len(ids) == sum(others) and "K1" in ids
    assert "it is about clusters with ZooKeeper" in reasons


# A broker that ends by itself, and internal topics that suffer as the user's does.

HALTED = parse_scenario(
    """
name: halted
cluster: {controllers: 1, brokers: 3, seed: 3}
steps:
  - {do: create_topic, name: orders, partitions: 1, replicas: 2, min_isr: 2}
  - {do: consume, topic: orders, group: g, count: 0}
  - {do: fail_dir, broker: leader(orders-0)}
  - {after: 40s, do: wait}
"""
)


TOLD = parse_scenario(
    """
name: told
cluster: {controllers: 1, brokers: 1, seed: 3}
steps:
  - {do: create_topic, name: orders, replicas: 1}
  - {do: produce, topic: orders, count: 3}
  - {do: drop_responses, api: Produce, when: after, topic: orders}
  - {do: produce, topic: orders, within: 2s}
  - {do: transaction, topic: orders, count: 2}
  - {do: consume, topic: orders, count: 5}
"""
)


def test_a_step_says_what_its_client_was_told_and_an_answer_what_it_does_once(
    tmp_path: Path,
) -> None:
    told = list[str]()
    played = play(TOLD, runs=tmp_path, on_step=lambda done, text, now_ms: told.append(text))
    results = ["3 of 3 acknowledged at offsets 0 to 2", "2 of 2 acknowledged; committed"]
    assert [text.strip() for text in told if text.startswith("  ")][::2] == results
    text = verify(played.path, engine="process").to_html()
    outcomes = dict(re.findall(r'id="step-(\d)">.*<td>([^<]*)</td></tr>', text))
    assert [outcomes["2"].partition(";")[0], outcomes["5"].partition("; took")[0]] == results
    assert outcomes["4"].startswith("0 of 1 acknowledged") and "records read" in outcomes["6"]
    assert "<td>drop_responses 1 101 Produce after it takes effect (step 3)</td>" in text


def test_a_broker_that_halts_is_a_disturbance_and_is_down(tmp_path: Path) -> None:
    played = play(HALTED, runs=tmp_path)
    story = story_of(read_run(played.path, played.path.name))
    failed, halted = story.disturbances
    [broker] = failed.nodes
    assert failed.text == f"fail_dir {broker} 0 (step 3)"
    assert halted.text == f"exit {broker} all log directories have failed (step 3)"
    assert story.down == {broker: [(halted.start_ms, None)]}


def test_the_users_partitions_are_drawn_before_those_of_internal_topics(tmp_path: Path) -> None:
    played = play(HALTED, runs=tmp_path)
    page = verify(played.path, engine="process").to_html()
    drawn = re.findall(r"<figcaption>([\w-]+)<small>", page)
    assert drawn[:2] == ["Cluster", "orders-0"]
    assert len(drawn) == 1 + DRAWN_PARTITIONS
    assert all(name.startswith("__consumer_offsets-") for name in drawn[2:])


def test_rules_are_folded_by_subject_in_natural_order_and_those_without_cases_once_more(
    busy: Report, busy_page: str
) -> None:
    rules = busy_page[busy_page.index('<h2 id="rules">Rules</h2>') :]
    subjects = re.findall(r'<details class="subject (\w+)"( open)?>', rules)
    assert len(subjects) == len(SUBJECTS) and not any(is_open for _, is_open in subjects)
    ids = re.findall(r'<td class="id">(\w+)</td>', rules)
    assert sorted(ids) == sorted(BY_ID), "each once"
    judged = [one.id for one in busy.rules if one.verdict is Verdict.VALID]
    changes = [one for one in ids if one.startswith("B")]
    parts = [one for one in changes if one in judged], [one for one in changes if one not in judged]
    assert changes == [*parts[0], *parts[1]] and "B2" in parts[1] and "B10" in parts[1]
    for part in parts:
        assert part == sorted(part, key=lambda one: int(one[1:]))
    idle = rules.index('<details class="idle">')
    assert idle < rules.index('<span class="pill no_cases">', idle)


def test_a_finding_has_the_moment_of_its_event(report: Report) -> None:
    """F8 of S32 had no chain, no moment and no mark."""
    [source] = report.sources
    run = source.read()
    assert run is not None
    rows = pq.read_table(run.trace["partition_event"]).to_pylist()
    row = next(one for one in rows if one["kind"] == "ack" and one["offset"] == 20)
    finding = Finding(
        run=run.name, offset=-1, rule="F8", topic="orders", partition=0, broker=row["broker"],
        message=f"leader {row['broker']} acknowledged offset 20 before all of [1, 2, 3] had it",
        event=row["seq"],
    )  # fmt: skip
    chains = Chains(run, [finding])
    assert chains.moment(finding) == row["vt"]
    kinds = {cause.kind for cause in chains.of(finding)}
    assert {"event", "step", "disturbance", "record"} <= kinds
    unknown = replace(finding, event=99_999_999)
    assert Chains(run, [unknown]).moment(unknown) is None


def test_whatever_a_name_holds_is_text_on_the_page(report: Report) -> None:
    [result] = report.rules
    finding = replace(result.findings[0], topic="<script>", message="</p><script>alert(1)</script>")
    bad = replace(report, rules=(replace(result, findings=(finding,)),), reasons=("<b>&",))
    page = bad.to_html()
    assert "<script>" not in page and "&lt;/p&gt;&lt;script&gt;alert(1)" in page
    assert "<li>&lt;b&gt;&amp;</li>" in page
