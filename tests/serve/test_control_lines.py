"""The lines of the control socket: what is a request, and what is refused in one line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.actors.serve.control_lines import (
    RESPONSE_BYTES_MAX,
    Response,
    read_request,
    read_response,
    request_line,
)
from minicluster.errors import UserError

TOKEN = "token"


def test_a_request_is_a_step() -> None:
    step = read_request(request_line(TOKEN, "kill broker(1)"), TOKEN)
    assert step.text == "kill node=broker(1)"


REFUSED = {
    b"": "one line of JSON",
    b"GET / HTTP/1.1\r\n": "one line of JSON",
    b"[1]\n": "an object",
    b"[" * 5_000 + b"\n": "one line of JSON",
    b'{"do": "heal"}\n': "not the token",
    b'{"token": "other", "do": "heal"}\n': "not the token",
    b'{"token": 7, "do": "heal"}\n': "not the token",
    b'{"token": "\\ud800", "do": "heal"}\n': "not the token",
    b'{"token": "token"}\n': "a request is one line",
    b'{"token": "token", "do": 7}\n': "a request is one line",
    b'{"token": "token", "do": "heal", "more": 1}\n': "a request is one line",
    b'{"token": "token", "do": "kil broker(1)"}\n': "did you mean kill?",
    b'{"token": "token", "do": "\\ud800"}\n': "half of a surrogate pair",
    b"\xff\xfe\n": "one line of JSON",
}


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: repr(line[:30]))
def test_what_is_no_request_is_refused_in_one_line(line: bytes) -> None:
    with pytest.raises(UserError) as refused:
        read_request(line, TOKEN)
    assert REFUSED[line] in str(refused.value) and "\n" not in str(refused.value)


def test_a_step_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(UserError, match="a step of 40000 characters"):
        request_line(TOKEN, "x" * 40_000)


@given(
    st.builds(
        Response,
        text=st.text(st.characters(codec="utf-8"), max_size=6_000),
        exit_code=st.integers(0, 255),
        step=st.none() | st.integers(1, 10_000),
        at_ms=st.integers(0, 2**40),
    )
)
def test_a_response_is_read_as_it_was_written_and_is_bounded(response: Response) -> None:
    line = response.line()
    assert line.count(b"\n") == 1 and len(line) <= RESPONSE_BYTES_MAX
    read = read_response(line)
    assert response.text.startswith(read.text.removesuffix("…"))
    assert (read.exit_code, read.step) == (response.exit_code, response.step)


@given(st.binary(max_size=60) | st.dictionaries(st.text(), st.integers()).map(json.dumps))
def test_any_line_is_read_or_refused(line: bytes | str) -> None:
    given_bytes = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    for read in (read_response, lambda given: read_request(given, TOKEN)):
        with pytest.raises(UserError):
            read(given_bytes)
