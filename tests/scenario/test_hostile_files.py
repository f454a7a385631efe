"""Hostile scenario files: each is read as plain values or refused in one line with its place."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from minicluster.errors import UserError
from minicluster.scenario import ScenarioError, load_scenario, parse_scenario
from minicluster.scenario.expression import parse
from minicluster.scenario.functions import FUNCTIONS, NAMED_SETS
from minicluster.scenario.selectors import parse_condition, parse_selector

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.read_text() for path in (ROOT / "examples").glob("*.yaml"))
SMALL, LARGE = 1_500, 15_000
LONGEST_S = 5.0  # for one file; the slowest takes a fraction of a second

ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)

REFUSED = {
    "a bomb of aliases": (ALIASES, "my.yaml:1:4: &a is an anchor"),
    "an alias": ("steps: [*x]", "my.yaml:1:9: *x is an alias; write the value out"),
    "a tag": ("steps: !!int abc", "my.yaml:1:8: tag:yaml.org,2002:int is a tag"),
    "a tag of Python's": ("steps: !!python/object:os.system x", "is a tag; write plain text"),
    "a key that is a list": ("? [a, b]\n: c", "my.yaml:1:3: a name is plain text"),
    "a key that is a mapping": ("{{a: b}: c}", "my.yaml:1:2: a name is plain text"),
    "no key": ("? ~\n: c", "'~' is not a name"),
    "merged": ("a: 1\n<<: {b: 2}", "'<<' is not a name"),
    "5,000 digits": ("cluster: {seed: " + "9" * 5_000 + "}", "a number of 5000 characters; 40"),
    "a date that is none": (
        "cluster: {seed: 2024-99-99}\nsteps: [{do: heal}]",
        "my.yaml:1:17: seed: '2024-99-99' is not a whole number",
    ),
    "1,500 levels": ("steps: " + "[" * 1_500, "nest deeper than 32 levels"),
    "1,500 levels of mappings": ("steps: " + "{a: " * 1_500, "nest deeper than 32 levels"),
    "1,500 levels of blocks": ("- " * 1_500 + "a", "nest deeper than 32 levels"),
    "two documents": ("steps: [{do: heal}]\n---\na: 1", "a second document begins"),
    "half a surrogate pair": ('name: "\\ud800"\nsteps: [{do: heal}]', "my.yaml:1:7"),
    "a null byte": ("name: \0", "my.yaml:1:7: not YAML"),
    "nothing": ("", "a scenario is a mapping"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_hostile_text_is_one_line_with_line_and_column(what: str) -> None:
    text, message = REFUSED[what]
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, where="my.yaml")
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1 and len(str(refused.value)) < 400


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe.yaml", tmp_path / "link.yaml"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    sparse = tmp_path / "sparse.yaml"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket.yaml"))
    for path in (pipe, link, Path("/dev/zero"), tmp_path, tmp_path / "socket.yaml"):
        with pytest.raises(ScenarioError, match="is not a file; give a scenario as a YAML file"):
            load_scenario(path)
    listener.close()
    with pytest.raises(ScenarioError, match="a scenario has at most 4,194,304"):
        load_scenario(sparse)
    with pytest.raises(ScenarioError, match="cannot be read: File name too long"):
        load_scenario(tmp_path / ("a" * 300))


ODD = (
    "&a ", "*a", "!!int ", "? ", "<<: ", "[", "]", "{", "}", ": ", "- ", "\t", '"', "'", "\\u",
    "|", "%", "---\n", "\0", "\ud800", "\u2028", "9" * 50, ".nan", "-.inf", "0x_", "1:2:3", "~",
    "2024-99-99", "=", ",", "#", "@", "`", "null", "true", "(", ")", "\r", "\ufeff", "1e999"
)  # fmt: skip


def damaged_texts(draw: random.Random, count: int) -> Iterator[str]:
    """Examples with pieces left out, doubled, or replaced by signs of YAML."""
    for _ in range(count):
        text = draw.choice(EXAMPLES)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(text) + 1)
            end = min(len(text), at + draw.choice((0, 1, 3, 20)))
            piece = draw.choice((draw.choice(ODD), draw.choice(ODD) * 40, text[at:end] * 2, ""))
            text = text[:at] + piece + text[end:]
        yield text


def check_texts(seed: int, count: int) -> None:
    refused = 0
    for text in damaged_texts(random.Random(seed), count):
        began = time.process_time()
        try:
            parse_scenario(text, where="my.yaml")
        except UserError as error:
            refused += 1
            line = str(error)
            assert line.startswith("my.yaml") and len(line.splitlines()) == 1, (seed, text, line)
            assert len(line) < 2_000, (seed, text, line)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r} for {text!r}") from error
        assert time.process_time() - began < LONGEST_S, (seed, text)
    assert count // 10 < refused < count


TOKENS = (
    *FUNCTIONS, *NAMED_SETS, "orders-0", "a", "1", "-1", "9" * 30, "(", "(", ")", ")", "[", "]",
    ",", "==", "!=", "<", ">=", "=", "n", "n=1", "and", "or", "not", "in", "true", "{", "\0",
    "é"
)  # fmt: skip


def check_expressions(seed: int, count: int) -> None:
    draw = random.Random(seed)
    for _ in range(count):
        text = " ".join(draw.choice(TOKENS) for _ in range(draw.choice((1, 2, 4, 8, 16, 400))))
        for read in (parse_selector, parse_condition):
            try:
                read(text, "my.yaml")
            except ScenarioError as error:
                line = str(error)
                assert len(line.splitlines()) == 1 and len(line) < 1_000, (seed, text, line)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error!r} for {text!r}") from error


def test_damaged_texts_are_read_or_refused() -> None:
    check_texts(seed=1, count=SMALL // 5)


def test_odd_expressions_are_read_or_refused() -> None:
    check_expressions(seed=1, count=SMALL)


@pytest.mark.slow
def test_ten_times_as_many_texts_and_expressions() -> None:
    check_texts(seed=2, count=LARGE // 5)
    check_expressions(seed=2, count=LARGE)


def test_5000_parentheses_and_brackets_are_one_line() -> None:
    for text in ("(" * 5_000, "[" * 5_000, "not " * 5_000, "leader(" * 900, "((" * 40 + "1"):
        with pytest.raises(ScenarioError) as refused:
            parse(text)
        assert len(str(refused.value)) < 300
