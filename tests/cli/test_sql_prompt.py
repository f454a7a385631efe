"""The prompt of ``sql`` and the forms of rows, without Spark."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from minicluster.cli import querying
from minicluster.cli.options import JSON, TEXT
from minicluster.cli.result_rows import CSV, MARKDOWN, Rows, lines_of
from minicluster.cli.sql_prompt import FIRST, HELP, NEXT, Prompt
from minicluster.errors import UserError
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.shown import frames

Read = Callable[[str], str]
ROWS = Rows(
    ("topic", "isr", "lost", "n"),
    [("orders", [1, 2], True, 10), ("a|b", None, False, 9)],
)


class Answers:
    """Queries that each give one row, or what a test wants."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled = 0

    def run(self, query: str) -> Rows:
        self.asked.append(query)
        if query == "slow":
            raise KeyboardInterrupt
        if query == "wrong":
            raise UserError("sql: no such column")
        return Rows(("answer", "again"), [(42, "and again")])

    def cancel(self) -> None:
        self.cancelled += 1


def typed(*lines: str | BaseException) -> tuple[Read, list[str]]:
    """A reader of these lines, and the prompts that it was given."""
    prompts: list[str] = []
    rest: Iterator[str | BaseException] = iter((*lines, EOFError()))

    def read(prompt: str) -> str:
        prompts.append(prompt)
        line = next(rest)
        if isinstance(line, BaseException):
            raise line
        return line

    return read, prompts


def asked(*lines: str | BaseException, width: int | None = None) -> tuple[Answers, list[str]]:
    answers = Answers()
    read, prompts = typed(*lines)
    Prompt(answers, read, width=lambda: width).loop()
    return answers, prompts


# --- queries --------------------------------------------------------------------------------------


def test_a_query_ends_with_a_semicolon_or_an_empty_line_or_the_input() -> None:
    answers, prompts = asked("select 1;", "select", "2 ;", "", "select 3", "", "select 4")

    assert answers.asked == ["select 1", "select\n2", "select 3", "select 4"]
    assert prompts == [FIRST, FIRST, NEXT, FIRST, FIRST, NEXT, FIRST, NEXT]


def test_ctrl_c_ends_a_query_and_not_the_prompt(capfd: pytest.CaptureFixture[str]) -> None:
    answers, _ = asked("slow;", "select 1;")

    assert (answers.asked, answers.cancelled) == (["slow", "select 1"], 1)
    assert "the query was ended" in capfd.readouterr().err


class InterruptedSpark:
    """Spark whose connections to Java end after Ctrl-C, the first of them at once."""

    _jsc = None

    def __init__(self) -> None:
        self.sparkContext = self
        self.cancelled = 0

    def sql(self, query: str) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JNetworkError("Answer from Java side is empty")

    def cancelAllJobs(self) -> None:
        self.cancelled += 1
        if self.cancelled == 1:
            raise Py4JNetworkError("Answer from Java side is empty")


def test_ctrl_c_that_cuts_off_a_connection_to_java_ends_the_query_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The prompt ended with an internal error, or called the end of the query a mistake in it."""
    monkeypatch.setattr(frames, "shown_in", lambda *_: None)
    queries: Any = querying.SparkQueries([], ReadLimits(), 10)
    queries._spark, queries._tables = spark, _ = InterruptedSpark(), object()
    read, prompts = typed("select 1;", "\\x")
    Prompt(queries, read).loop()
    assert capfd.readouterr().err == "the query was ended\n"
    assert spark.cancelled == 2 and prompts == [FIRST] * 3


def test_ctrl_c_drops_the_lines_of_a_query() -> None:
    answers, prompts = asked("select", KeyboardInterrupt(), "select 1;")

    assert (answers.asked, answers.cancelled) == (["select 1"], 0)
    assert prompts[:3] == [FIRST, NEXT, FIRST]


def test_a_mistake_is_one_line_and_the_prompt_continues(capfd: pytest.CaptureFixture[str]) -> None:
    answers, _ = asked("wrong;", "select 1;")

    assert answers.asked == ["wrong", "select 1"]
    assert capfd.readouterr().err == "sql: no such column\n"


def test_the_commands_list_describe_turn_and_end(capfd: pytest.CaptureFixture[str]) -> None:
    answers, _ = asked("\\d", "\\d fencing", "\\d fencings", "\\x", "select 1;", "\\?", "\\q", "x;")
    shown = capfd.readouterr()

    assert answers.asked == ["select 1"]
    assert "client_operations" in shown.out
    assert "it is fenced, or not registered, from here on" in shown.out
    assert "did you mean fencing?" in shown.err
    assert "─ row 1 ──────\nanswer  42\nagain   and again\n" in shown.out
    assert HELP in shown.out


def test_a_command_between_the_lines_of_a_query_is_done_and_leaves_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    answers, prompts = asked("select 1", "\\d fencing", "from fencing;", "select", "\\q", "x;")

    assert answers.asked == ["select 1\nfrom fencing"]
    assert prompts == [FIRST, NEXT, NEXT, FIRST, NEXT]
    assert "it is fenced, or not registered, from here on" in capfd.readouterr().out


def test_descriptions_wrap_on_a_narrow_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    asked("\\d", "\\d client_operations", width=60)
    lines = capfd.readouterr().out.splitlines()

    assert max(map(len, lines)) <= 60 and not [line for line in lines if "─ row" in line]
    place = lines.index("controllers            each term of an active controller: of")
    assert lines[place + 1] == "                       the quorum's leader, or of a broker"
    assert any(line.startswith("as_of(timestamp'…')") for line in lines)


def test_a_terminal_that_is_too_narrow_has_rows_and_counts_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    asked("select 1;", width=12)
    narrow = capfd.readouterr().out
    asked("select 1;", width=80)
    wide = capfd.readouterr().out

    assert narrow.splitlines() == ["─ row 1 ──────", "answer  42", "again   and again", "(1 row)"]
    assert wide.splitlines() == [
        "answer  again",
        "──────  ─────────",
        "    42  and again",
        "(1 row)",
    ]


# --- forms ----------------------------------------------------------------------------------------


def test_a_table_is_never_cropped() -> None:
    long = Rows(("text",), [("x" * 500,)])

    assert list(lines_of(long, TEXT))[-1] == "x" * 500
    assert list(lines_of(long, TEXT, width=80))[-1] == "text  " + "x" * 500


def test_numbers_stand_on_the_right_and_nothing_is_an_empty_cell() -> None:
    assert list(lines_of(ROWS, TEXT)) == [
        "topic   isr     lost    n",
        "──────  ──────  ─────  ──",
        "orders  [1, 2]  true   10",
        "a|b             false   9",
    ]


def test_a_text_of_several_lines_is_shown_as_such() -> None:
    plan = Rows(("plan",), [("== Physical Plan ==\nScan\x1b[2J",)])

    assert list(lines_of(plan, TEXT))[1:] == ["plan  == Physical Plan ==", "      Scan\\x1b[2J"]


def test_the_forms_for_programs_and_pages() -> None:
    assert list(csv.reader(lines_of(ROWS, CSV)))[1:] == [
        ["orders", "[1, 2]", "true", "10"],
        ["a|b", "", "false", "9"],
    ]
    assert list(lines_of(ROWS, MARKDOWN)) == [
        "| topic | isr | lost | n |",
        "| --- | --- | --- | --- |",
        "| orders | [1, 2] | true | 10 |",
        "| a\\|b |  | false | 9 |",
    ]
    first, _ = map(json.loads, lines_of(ROWS, JSON))
    assert first == {"topic": "orders", "isr": [1, 2], "lost": True, "n": 10}


def test_times_have_milliseconds() -> None:
    moment = datetime.datetime.fromisoformat("1970-01-01 00:00:15.773")

    assert list(lines_of(Rows(("time",), [(moment,)]), TEXT))[-1] == "1970-01-01 00:00:15.773"


def test_no_rows_are_a_head() -> None:
    assert list(lines_of(Rows(("a", "b"), []), TEXT)) == ["a  b", "─  ─"]


@pytest.mark.parametrize("word", ["exit", "quit", "QUIT;", " exit "])
def test_words_that_other_prompts_know_end_it(word: str) -> None:
    answers, _ = asked(word, "select 1;")

    assert answers.asked == []


def test_help_is_a_word_only_where_no_query_has_begun(capfd: pytest.CaptureFixture[str]) -> None:
    answers, prompts = asked("help", "select", "exit", "from t;")

    assert prompts == [FIRST, FIRST, NEXT, NEXT, FIRST]
    assert answers.asked == ["select\nexit\nfrom t"]
    assert "lists the views" in capfd.readouterr().out
