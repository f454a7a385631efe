"""The steps of a serving cluster: a scenario's, and those that come while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.serve.control import Command
from minicluster.actors.serve.control_lines import Response
from minicluster.actors.serve.session import ENDS, Session
from minicluster.errors import UserError
from minicluster.scenario import Scenario, parse_scenario
from minicluster.scenario.scenario import to_yaml
from minicluster.scenario.step_text import parse_step
from minicluster.values import replace
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.reporting.story import listed_nodes, story_of

LIMIT_S = 60.0
CREATE = "create_topic orders replicas=2"
QUICK = {"broker.heartbeat.interval.ms": "200ms", "broker.session.timeout.ms": "1500ms"}


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    shape = {"brokers": 2, "controllers": 1, "runtime": "threaded", "config": QUICK}
    with MiniCluster(seed=5, **shape) as built:
        yield built


def scenario(*steps: str) -> Scenario:
    return Scenario(steps=tuple(parse_step(text, n) for n, text in enumerate(steps, 1)))


class Shell:
    """A user who types steps while the session runs in the test's thread."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def submit(self, text: str) -> list[Response]:
        responses: list[Response] = []
        came = threading.Event()

        def respond(response: Response) -> None:
            responses.append(response)
            came.set()

        self.session.submit(Command(parse_step(text), respond))
        self._came = came
        return responses

    def do(self, text: str) -> Response:
        responses = self.submit(text)
        assert self._came.wait(LIMIT_S), text
        return responses[0]


@contextmanager
def typed(session: Session, script: list[str], found: list[Response]) -> Iterator[None]:
    """A thread that types a script, then stops the session."""

    def type_it() -> None:
        shell = Shell(session)
        try:
            found.extend(shell.do(text) for text in script)
        finally:
            session.stop()

    thread = threading.Thread(target=type_it)
    thread.start()
    try:
        yield
    finally:
        session.stop()
        thread.join(LIMIT_S)


def play(session: Session, *script: str) -> list[Response]:
    found: list[Response] = []
    with typed(session, list(script), found):
        session.run()
    return found


def test_each_step_prints_what_it_named_and_what_came(cluster: MiniCluster) -> None:
    responses = play(
        Session(inside(cluster), Scenario()),
        CREATE,
        "produce orders count=3",
        "kill leader(orders-0)",
        "until leader(orders-0) != none",
        "kill broker(9)",
        "restart brokers",
        "pause broker(1)",
        "pause broker(1)",
        "kill follower(orders-0, n=7)",
        "resume 1",
    )
    texts = [response.text for response in responses]
    assert texts[0].startswith("create_topic name=orders replicas=2: orders-0 leader ")
    assert texts[1] == "produce topic=orders count=3: 3 of 3 acknowledged at offsets 0 to 2"
    assert texts[2] in [f"kill node=leader(orders-0): node {n}" for n in (1, 2)]
    assert texts[3].endswith(": it holds")
    assert texts[4].endswith("broker(9): there is no such broker; brokers are 1, 2")
    assert texts[5] == "restart node=brokers: node 1, 2"
    assert texts[7] == "pause node=broker(1): node 1; 1: it does not run"
    assert texts[8].endswith("names nobody now")
    codes = [response.exit_code for response in responses]
    assert codes == [0, 0, 0, 0, 65, 0, 0, 0, 0, 0]
    assert [response.step for response in responses if response.step] == list(range(1, 10))


def test_each_step_of_a_client_prints_what_came_of_it(cluster: MiniCluster) -> None:
    """A transaction and a consumer once ended the session, and with it the cluster."""
    responses = play(
        Session(inside(cluster), Scenario()),
        CREATE,
        "produce orders",
        "transaction orders count=2",
        "transaction orders transactional_id=other count=1 end=abort",
        "transaction orders transactional_id=third count=1 end=open",
        "consume orders count=3",
        "delete_records orders-0",
        "consume orders group=behind lasting=5s",
        "produce orders rate=10 lasting=2s",
    )
    assert [response.text.split(": ", 1)[1:] for response in responses[1:]] == [
        ["1 of 1 acknowledged at offset 0"],
        ["2 of 2 acknowledged; committed"],
        ["1 of 1 acknowledged; aborted"],
        ["1 of 1 acknowledged; the transaction is left open"],
        ["5 records read"],
        ["orders-0 begins at offset 7"],
        [],
        [],
    ]


def test_clients_are_named_in_what_is_printed_and_on_the_page(tmp_path: Path) -> None:
    with MiniCluster(seed=3, brokers=1, controllers=1, listeners=True) as served:
        nodes = [served.client(f"app-{number}").id for number in range(1, 9)]
        [response] = play(Session(inside(served), Scenario()), "cut client(app-7) brokers")
        run = served.save(tmp_path / "run")

    assert response.text == "cut src=client(app-7) dst=brokers: src app-7; dst 1"
    story = story_of(read_run(run, "run"))
    assert [cut.targets for cut in story.disturbances] == ["app-7→1"]
    six = ", ".join(f"app-{number}" for number in range(1, 7))
    assert listed_nodes([[1], nodes], story.clients) == f"[1], [{six}, and 2 more]"


def test_the_steps_are_a_scenario_that_can_be_played(cluster: MiniCluster) -> None:
    session = Session(inside(cluster), Scenario())
    play(session, "wait", CREATE, "expect isr(orders-0) == 9", "kill broker(1)")
    assert [step.text for step in session.played] == [
        "wait",
        "create_topic name=orders replicas=2",
        "kill node=broker(1)",
    ]
    times = [step.at_ms or 0 for step in session.played]
    assert times == sorted(times)
    again = replace(session.scenario, steps=tuple(session.played)).to_dict()
    assert parse_scenario(to_yaml(again)).steps == tuple(session.played)


def test_an_expectation_that_does_not_hold_is_1_and_one_line(cluster: MiniCluster) -> None:
    [response] = play(Session(inside(cluster), Scenario()), "expect fenced(broker(1))")
    assert response.exit_code == 1 and "\n" not in response.text
    assert response.text.startswith("step 1: expected fenced(broker(1)), but active controller")


def test_a_step_that_waits_lets_others_go_on(cluster: MiniCluster) -> None:
    cluster.create_topic("orders", replicas=2)
    session = Session(inside(cluster), scenario("until isr(orders-0) == 1 within=60s"))
    responses = play(
        session,
        "until fully_in_sync(orders-0)",
        "kill broker(1)",
        "until isr(orders-0) == 1 within=60s",
    )
    assert [response.exit_code for response in responses] == [0, 0, 0]
    assert session.failure is None


def test_a_wait_that_is_too_long_is_2(cluster: MiniCluster) -> None:
    [response] = play(Session(inside(cluster), Scenario()), "until fenced(broker(1)) within=50ms")
    assert response.exit_code == 2 and "timed out after 50ms waiting for " in response.text


def test_a_scenario_that_fails_ends_and_the_cluster_goes_on(cluster: MiniCluster) -> None:
    lines: list[str] = []
    cluster.create_topic("orders", replicas=2)
    session = Session(
        inside(cluster),
        scenario("heal", "expect isr(orders-0) == 1", "kill brokers"),
        on_failure=lines.append,
    )
    responses = play(session, "wait", "until fully_in_sync(orders-0)")
    assert [response.exit_code for response in responses] == [0, 0]
    assert session.failure is not None and session.failure.exit_code == 1
    assert lines == [session.failure.text] and "expected isr(orders-0) == 1" in lines[0]
    assert "kill node=brokers" not in [step.text for step in session.played]


def test_a_step_that_fails_looks_so(cluster: MiniCluster) -> None:
    told: list[str] = []
    session = Session(inside(cluster), Scenario(), on_step=lambda text, now_ms: told.append(text))

    rejected, kept = play(session, "kill node=9", "heal")

    assert rejected.exit_code and not kept.exit_code
    assert told == ["kill node=9", f"failed: {rejected.text}", "heal"]


def test_a_scenario_begins_anew(cluster: MiniCluster) -> None:
    begun: list[str] = []

    def on_step(text: str, now_ms: int) -> None:
        begun.append(text)
        if len(begun) == 5:
            session.stop()

    session = Session(
        inside(cluster), scenario("heal", "resume brokers"), again=True, on_step=on_step
    )
    session.run()
    assert begun == ["heal", "resume node=brokers"] * 2 + ["heal"]
    # a round lasts a second from its start, which its first step may follow late
    second_round_ms = session.played[2].at_ms
    assert second_round_ms is not None and second_round_ms >= 1_000


def test_steps_fire_at_their_times() -> None:
    first, second, third = scenario("heal", "heal", "heal").steps
    timed = (first, replace(second, after_ms=30), replace(third, at_ms=70))
    with MiniCluster(brokers=1, controllers=1, seed=5) as cluster:  # its time passes by looks alone
        began_ms = cluster.now_ms
        fired: list[int] = []

        def on_step(text: str, now_ms: int) -> None:
            fired.append(now_ms - began_ms)
            if len(fired) == 3:
                session.stop()

        look = lambda: cluster.run_for("10ms")  # noqa: E731
        session = Session(inside(cluster), Scenario(steps=timed), on_step=on_step, on_look=look)
        session.run()
    assert fired == [0, 30, 70]


def test_the_end_responds_to_what_still_waits(cluster: MiniCluster) -> None:
    session = Session(inside(cluster), Scenario())
    shell = Shell(session)
    waiting = shell.submit("until fenced(broker(1)) within=60s")
    stopper = threading.Timer(0.3, session.stop)
    stopper.start()
    session.run()
    stopper.join()
    late = shell.submit("heal")
    session.stop()
    session.run()
    assert waiting == [ENDS] and late == [ENDS]


def test_a_topic_that_the_cluster_refuses_is_an_error_before_anything(
    cluster: MiniCluster,
) -> None:
    with pytest.raises(UserError, match="INVALID_REPLICATION_FACTOR"):
        Session(inside(cluster), Scenario()).perform(parse_step("create_topic orders replicas=9"))
