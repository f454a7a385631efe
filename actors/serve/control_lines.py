"""The lines of the control socket, as pure functions: JSON in, JSON out, bounded.

{"token": "…", "do": "kill leader(orders-0)"}
{"ok": true, "cluster": "shop", "step": 4, "at_ms": 12345, "text": "kill node=2"}
{"ok": false, "cluster": "shop", "exit_code": 65, "text": "'kil …': unknown action 'kil'; …"}
"""

from __future__ import annotations

import hmac
import json
from typing import Any

from minicluster.errors import UserError
from minicluster.scenario.checks.limits import checked_text
from minicluster.scenario.scenario import Step
from minicluster.scenario.step_text import parse_step
from minicluster.values import Value

LINE_BYTES_MAX = 32 * 1024
TEXT_MAX = 4_000  # characters of a response
RESPONSE_BYTES_MAX = 64 * 1024


class Response(Value, kw_only=True):
    """The end of a step: the text for a person, and the exit code of the command that sent it.

    Shapes:  cluster: the name of the cluster; the control socket adds it.
    """

    text: str
    cluster: str = ""
    exit_code: int = 0
    step: int | None = None
    at_ms: int | None = None

    def line(self) -> bytes:
        """The response as a line."""
        value: dict[str, Any] = {"ok": self.exit_code == 0, "cluster": self.cluster}
        if self.exit_code:
            value["exit_code"] = self.exit_code
        if self.step is not None:
            value |= {"step": self.step, "at_ms": self.at_ms}
        text = self.text if len(self.text) <= TEXT_MAX else f"{self.text[: TEXT_MAX - 1]}…"
        return json.dumps({**value, "text": text}).encode() + b"\n"


def request_line(token: str, text: str) -> bytes:
    """A request to perform a step.

    Errors:  UserError for a text that is too long.
    """
    line = json.dumps({"token": token, "do": text}).encode() + b"\n"
    if len(line) > LINE_BYTES_MAX:
        raise UserError(f"a step of {len(text)} characters; a line has {LINE_BYTES_MAX} bytes")
    return line


def read_request(line: bytes, token: str) -> Step:
    """The step of a request; its number is still to come.

    Errors:  UserError in one line for a line that is none, another token, a step that is none.
    """
    value = _object(line, "a request")
    sent_token = value.get("token")
    if not isinstance(sent_token, str) or not hmac.compare_digest(
        sent_token.encode("utf-8", "surrogatepass"), token.encode()
    ):
        raise UserError("this is not the token of the cluster; it is in the ready file")
    text = value.get("do")
    if not isinstance(text, str) or value.keys() != {"token", "do"}:
        raise UserError('a request is one line: {"token": "…", "do": "kill leader(orders-0)"}')
    return parse_step(text)


def read_response(line: bytes) -> Response:
    """The response of a cluster.

    Errors:  UserError for a line that is none.
    """
    value = _object(line, "a response")
    code = value.get("exit_code", 0)
    text, step, at_ms = value.get("text"), value.get("step"), value.get("at_ms")
    cluster = value.get("cluster", "")
    whole = (int, type(None))
    if not (
        isinstance(text, str)
        and isinstance(cluster, str)
        and isinstance(code, int)
        and isinstance(step, whole)
        and isinstance(at_ms, whole)
    ):
        raise UserError("what listens there is no minicluster")
    return Response(
        text=checked_text(text, "text"),
        cluster=checked_text(cluster, "cluster"),
        exit_code=code,
        step=step,
        at_ms=at_ms,
    )


def _object(line: bytes, subject: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UserError(f"{subject} is one line of JSON, an object")
    return value
