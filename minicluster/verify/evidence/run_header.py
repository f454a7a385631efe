"""``run.json`` as the verification reads it: every field with its type and its range checked.

A file that is no JSON object is damaged evidence, and the run proves nothing. A field of another
type is not a run of minicluster: one line that names file and field, and exit code 65.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from minicluster.errors import UserError
from minicluster.files import UnusableFile, read_bytes
from minicluster.log.locating import NODE_ID_MAX
from minicluster.log.written_files import WRITTEN, WrittenFile
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.rules import Rules
from minicluster.trace import TABLES, ZNODES
from minicluster.values import dataclass
from minicluster.verify.evidence.scenario_failure import KINDS, ScenarioFailure

RUN_FORMAT = 3
"""The format of a run folder. The trace hash of formats 1 and 2 is over events, not over rows."""

_COUNT_MAX = 2**63 - 1
_SEED_BITS = 256
_CLIENT_NODE = re.compile(r"-[1-9][0-9]{0,8}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

_HEADER_BYTES_MAX = 64 << 20
_KIND_OF_FORMAT_1 = {"unanswered": "no_response"}


class NotARun(UserError):
    """A run folder whose contents no run of minicluster writes."""

    exit_code = 65


class DamagedHeader(ValueError):
    """``run.json`` cannot be read as a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformedStep:
    """A step of the scenario as it was performed.

    Shapes:  resolved: the node ids of each selector; note: the reason that it failed, or that it
             changed nothing; result: what its client was told.
    """

    number: int
    at_ms: int
    ended_ms: int
    resolved: Mapping[str, Any]
    note: str | None
    failed: bool
    result: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLife:
    """One process of a user's program inside the simulation.

    Shapes:  ended: how, as ``ended failed killed cancelled SIGTERM stopped``; None: it still ran.
             error_read: the test has looked at the error. paused: it was, when the run ended.
    """

    started_ms: int
    ended_ms: int | None = None
    ended: str | None = None
    error: str | None = None
    error_read: bool = False
    paused: bool = False

    @property
    def lasts(self) -> bool:
        """It ran when the run ended, and was not paused."""
        return self.ended in (None, "stopped") and not self.paused


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """A user's program inside the simulation, with its processes in their order.

    Shapes:  node: its id in the network.
    """

    name: str
    node: int
    lives: tuple[ProgramLife, ...]

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> ProgramRun:
        """A program as ``run.json`` has it, whose fields were checked."""
        names = ("started_ms", "ended_ms", "ended", "error", "error_read", "paused")
        lives = (
            ProgramLife(**{name: life[name] for name in names if name in life})
            for life in value["incarnations"]
        )
        return cls(name=value["name"], node=value["node"], lives=tuple(lives))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """The fields of ``run.json`` that others need; what is missing there is None or empty."""

    format: int = 1
    seed: int | None = None
    mode: str | None = None
    runtime: str | None = None
    epoch_ms: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    brokers: tuple[int, ...] = ()
    clients: Mapping[int, str] = field(default_factory=dict)  # client.id by node
    apps: tuple[ProgramRun, ...] = ()
    rules: Rules | None = None
    protocol: InterBrokerProtocol | None = None  # of a cluster on ZooKeeper
    ineligible_members_rejected: bool = True  # by the controller on ZooKeeper
    controllers: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    hits: Mapping[str, int] = field(default_factory=dict)
    exercises: tuple[str, ...] = ()
    has_scenario: bool = False
    trace_rows: Mapping[str, int] = field(default_factory=dict)
    trace_hash: str | None = None
    repeat_trace_hash: str | None = None
    crashes: int | None = None
    controller_faults: int | None = None
    stale_indexes: tuple[int, ...] | None = None
    intercepted: tuple[str, ...] = ()  # functions of the test that saw clients' requests
    recorder_problems: tuple[tuple[str | None, str], ...] = ()  # what the run lacks, and why
    written: Mapping[str, WrittenFile] | None = None
    failure: ScenarioFailure | None = None
    scenario: Mapping[str, Any] | None = None
    steps: tuple[PerformedStep, ...] = ()
    ended_at_ms: int | None = None
    healed_ms: int | None = None
    bounds_ms: Mapping[str, int] = field(default_factory=dict)
    minicluster: str | None = None


def read_header(path: Path) -> RunHeader:
    """Read ``run.json``.

    Errors:  DamagedHeader if it is no JSON object; NotARun for a field of another type or range.
    """
    try:
        content = json.loads(read_bytes(path, max_bytes=_HEADER_BYTES_MAX).decode())
    except UnusableFile as error:
        raise DamagedHeader(str(error)) from None
    except OSError as error:
        raise DamagedHeader(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DamagedHeader(f"{path}: not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        why = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise DamagedHeader(f"{path}: not JSON: {why}") from None
    except RecursionError:
        raise NotARun(f"{path}: nested too deeply for a run's header") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise NotARun(f"{path}: a number has too many digits") from None
    if not isinstance(content, dict):
        raise DamagedHeader(f"{path}: not a JSON object")
    return _Reader(path, content).header()


class _Reader:
    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self._path = path
        self._content = content

    def header(self) -> RunHeader:
        crashes = self._optional("crashes", list, "a list")
        faults = self._optional("controller_faults", list, "a list")
        for name in ("run_id", "metadata_version", "cluster_id"):
            self._text(name)
        self._integer("events")
        return RunHeader(
            format=self._format(),
            seed=self._seed(),
            mode=self._text("mode"),
            runtime=self._text("runtime"),
            epoch_ms=self._integer("epoch_ms"),
            config=self._optional("config", dict, "an object") or {},
            brokers=self._node_ids("brokers") or (),
            clients=self._clients(),
            apps=self._apps(),
            rules=self._rules(),
            protocol=self._protocol(),
            ineligible_members_rejected=self._content.get("ineligible_members_refused")
            is not False,
            controllers=self._node_ids("controllers") or (),
            faults=self._texts("faults"),
            hits=self._counts("hits"),
            exercises=self._texts("exercises"),
            has_scenario=bool(self._optional("scenario", dict, "an object")),
            trace_rows=self._counts("trace_rows"),
            trace_hash=self._text("trace_hash"),
            repeat_trace_hash=self._text("repeat_trace_hash"),
            crashes=None if crashes is None else len(crashes),
            controller_faults=None if faults is None else len(faults),
            stale_indexes=self._node_ids("stale_indexes"),
            intercepted=self._texts("intercepted"),
            recorder_problems=self._recorder_problems(),
            written=self._written(),
            failure=self._failure(),
            scenario=self._optional("scenario", dict, "an object"),
            steps=self._steps(),
            ended_at_ms=self._integer("ended_at_ms"),
            healed_ms=self._integer("healed_ms"),
            bounds_ms=self._counts("bounds_ms"),
            minicluster=self._text("minicluster"),
        )

    def _wrong(self, name: str, value: object, expected: str) -> NotARun:
        shown = ascii(value)
        shown = shown if len(shown) <= 40 else shown[:39] + "…"
        return NotARun(f"{self._path}: {name} is {shown}, not {expected}")

    def _optional(self, name: str, kind: type, expected: str) -> Any:
        value = self._content.get(name)
        if value is not None and not isinstance(value, kind):
            raise self._wrong(name, value, expected)
        return value

    def _checked_text(self, name: str, value: object) -> str:
        if not isinstance(value, str) or not _is_utf8(value):
            raise self._wrong(name, value, "text")
        return value

    def _checked_integer(self, name: str, value: object, highest: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= highest:
            raise self._wrong(name, value, f"an integer from 0 to {highest}")
        return value

    def _format(self) -> int:
        """The format; that of a newer minicluster, whose fields may differ, is rejected."""
        version = self._integer("format") or 1
        if version > RUN_FORMAT:
            raise NotARun(
                f"{self._path}: a run folder of format {version}, and this minicluster reads "
                f"formats up to {RUN_FORMAT}: update minicluster"
            )
        return version

    def _clients(self) -> Mapping[int, str]:
        """The clients' names by node, whose ids are negative; JSON has no numbers as keys."""
        named = self._optional("clients", dict, "an object") or {}
        if wrong := [node for node in named if not _CLIENT_NODE.fullmatch(node)]:
            raise self._wrong("clients", wrong[0], "the id of a client's node, such as -2")
        return {int(node): self._checked_text("clients", name) for node, name in named.items()}

    def _apps(self) -> tuple[ProgramRun, ...]:
        """The users' programs; runs of earlier versions have none."""
        apps = self._optional("apps", list, "a list") or ()
        for index, value in enumerate(apps):
            name = f"apps[{index}]"
            if not isinstance(value, dict):
                raise self._wrong(name, value, "an object")
            self._checked_text(f"{name}.name", value.get("name"))
            if not _CLIENT_NODE.fullmatch(str(value.get("node"))):
                raise self._wrong(f"{name}.node", value.get("node"), "a client's node, such as -2")
            lives = value.get("incarnations")
            if not isinstance(lives, list):
                raise self._wrong(f"{name}.incarnations", lives, "a list")
            for number, life in enumerate(lives):
                self._check_life(f"{name}.incarnations[{number}]", life)
        return tuple(ProgramRun.of(value) for value in apps)

    def _check_life(self, name: str, value: object) -> None:
        if not isinstance(value, dict):
            raise self._wrong(name, value, "an object")
        self._checked_integer(f"{name}.started_ms", value.get("started_ms"), _COUNT_MAX)
        if value.get("ended_ms") is not None:
            self._checked_integer(f"{name}.ended_ms", value["ended_ms"], _COUNT_MAX)
        for key in ("ended", "error"):
            if value.get(key) is not None:
                self._checked_text(f"{name}.{key}", value[key])
        for key in ("error_read", "paused"):
            if not isinstance(value.get(key, False), bool):
                raise self._wrong(f"{name}.{key}", value[key], "true or false")

    def _text(self, name: str) -> str | None:
        value = self._content.get(name)
        return None if value is None else self._checked_text(name, value)

    def _texts(self, name: str) -> tuple[str, ...]:
        values = self._optional(name, list, "a list") or ()
        return tuple(self._checked_text(f"{name}[{i}]", value) for i, value in enumerate(values))

    def _integer(self, name: str) -> int | None:
        value = self._content.get(name)
        return None if value is None else self._checked_integer(name, value, _COUNT_MAX)

    def _seed(self) -> int | None:
        value = self._content.get("seed")
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value.bit_length() > _SEED_BITS:
            raise self._wrong("seed", value, f"an integer of at most {_SEED_BITS} bits")
        return value

    def _node_ids(self, name: str) -> tuple[int, ...] | None:
        values = self._optional(name, list, "a list")
        if values is None:
            return None
        return tuple(
            self._checked_integer(f"{name}[{index}]", value, NODE_ID_MAX)
            for index, value in enumerate(values)
        )

    def _failure(self) -> ScenarioFailure | None:
        """The scenario's failure; runs of earlier versions do not record it."""
        failure = self._optional("failure", dict, "an object")
        if failure is None:
            return None
        kind, rule = failure.get("kind"), failure.get("rule")
        if isinstance(kind, str):
            kind = _KIND_OF_FORMAT_1.get(kind, kind)
        if kind not in KINDS:
            raise self._wrong("failure.kind", kind, f"one of {', '.join(KINDS)}")
        if rule is not None:
            rule = self._checked_text("failure.rule", rule)
        return ScenarioFailure(kind, self._checked_text("failure.text", failure.get("text")), rule)

    def _recorder_problems(self) -> tuple[tuple[str | None, str], ...]:
        """The evidence that the run lacks (a table, the znodes, or None), with the reasons."""
        problems: list[tuple[str | None, str]] = []
        for index, value in enumerate(self._optional("recorder_problems", list, "a list") or ()):
            name = f"recorder_problems[{index}]"
            if not isinstance(value, dict):
                raise self._wrong(name, value, "an object")
            lacks = value.get("lacks")
            if lacks is not None and lacks not in (*TABLES, ZNODES):
                raise self._wrong(f"{name}.lacks", lacks, "a table of the trace")
            problems.append((lacks, self._checked_text(f"{name}.why", value.get("why"))))
        return tuple(problems)

    def _steps(self) -> tuple[PerformedStep, ...]:
        """The steps that were performed; runs of earlier versions do not record them."""
        steps = []
        for index, value in enumerate(self._optional("steps", list, "a list") or ()):
            name = f"steps[{index}]"
            if not isinstance(value, dict):
                raise self._wrong(name, value, "an object")
            number, at_ms, ended_ms = (
                self._checked_integer(f"{name}.{key}", value.get(key, 0), _COUNT_MAX)
                for key in ("step", "at_ms", "ended_ms")
            )
            resolved = value.get("resolved")
            why, result = value.get("failed") or value.get("note"), value.get("result")
            steps.append(
                PerformedStep(
                    number=number,
                    at_ms=at_ms,
                    ended_ms=ended_ms,
                    resolved=resolved if isinstance(resolved, dict) else {},
                    note=None if why is None else self._checked_text(f"{name}.note", why),
                    failed=value.get("failed") is not None,
                    result=None if result is None else self._checked_text(f"{name}.result", result),
                )
            )
        return tuple(steps)

    def _items(self, name: str) -> Iterator[tuple[str, Any]]:
        values = self._optional(name, dict, "an object")
        for key, value in (values or {}).items():
            yield self._checked_text(f"a key of {name}", key), value

    def _counts(self, name: str) -> dict[str, int]:
        return {
            key: self._checked_integer(f"{name}.{key}", value, _COUNT_MAX)
            for key, value in self._items(name)
        }

    def _rules(self) -> Rules | None:
        name = self._text("rules")
        try:
            return None if name is None else Rules.named(name)
        except UserError as error:
            raise NotARun(f"{self._path}: {error}") from None

    def _protocol(self) -> InterBrokerProtocol | None:
        text = self._text("inter_broker_protocol")
        try:
            return None if text is None else InterBrokerProtocol.parse(text)
        except UserError as error:
            raise NotARun(f"{self._path}: {error}") from None

    def _written(self) -> dict[str, WrittenFile] | None:
        if self._content.get(WRITTEN) is None:
            return None
        files: dict[str, WrittenFile] = {}
        for name, value in self._items(WRITTEN):
            inside = Path(name)
            if inside.is_absolute() or ".." in inside.parts or "\0" in name or not name:
                raise self._wrong(f"a key of {WRITTEN}", name, "a path in the run folder")
            if not isinstance(value, dict):
                raise self._wrong(f"{WRITTEN}.{name}", value, "an object")
            digest, end = value.get("sha256"), value.get("end_offset")
            if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
                raise self._wrong(f"{WRITTEN}.{name}.sha256", digest, "a SHA-256 in hexadecimal")
            files[name] = WrittenFile(
                size=self._checked_integer(f"{WRITTEN}.{name}.size", value.get("size"), _COUNT_MAX),
                sha256=digest,
                end_offset=None
                if end is None
                else self._checked_integer(f"{WRITTEN}.{name}.end_offset", end, _COUNT_MAX),
            )
        return files


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
