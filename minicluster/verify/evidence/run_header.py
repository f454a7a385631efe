"""``run.json`` as the verification reads it: every field with its type and its range checked.

A file that is not a JSON object is damaged evidence, and the run proves nothing. A field of another
type is not a run of minicluster: one line that names file and field, and exit code 65.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta, Struct, field
from msgspec import field as named

from minicluster.errors import UserError
from minicluster.files import UnusableFile, read_bytes
from minicluster.log.locating import NODE_ID_MAX
from minicluster.log.written_files import WRITTEN, WrittenFile
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.rules import Rules
from minicluster.trace import TABLES, ZNODES
from minicluster.values import Value
from minicluster.verify.evidence.scenario_failure import ScenarioFailure

RUN_FORMAT = 3
"""The format of a run folder. The trace hash of formats 1 and 2 is over events, not over rows."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
NodeIds = tuple[Annotated[int, Meta(ge=0, le=NODE_ID_MAX)], ...]
ClientNode = Annotated[int, Meta(ge=-999_999_999, le=-1)]
_SEED_BITS = 256
_SHA256 = re.compile(r"[0-9a-f]{64}")

_HEADER_BYTES_MAX = 64 << 20


class NotARun(UserError):
    """A run folder whose contents no run of minicluster writes."""

    exit_code = 65


class DamagedHeader(ValueError):
    """``run.json`` cannot be read as a JSON object."""


class PerformedStep(Struct, frozen=True, kw_only=True):
    """A step of the scenario as it was performed.

    Shapes:  resolved: the node ids of each selector; why_failed; remark: what else is to be said of
             it; result: what its client was told.
    """

    number: Count = named(name="step", default=0)
    at_ms: Count = 0
    ended_ms: Count = 0
    resolved: Mapping[str, Any] = {}
    why_failed: str | None = named(name="failed", default=None)
    remark: str | None = named(name="note", default=None)
    result: str | None = None

    @property
    def failed(self) -> bool:
        """It did not go as written."""
        return self.why_failed is not None

    @property
    def note(self) -> str | None:
        """The reason that it failed, or that it changed nothing."""
        return self.why_failed or self.remark


class ProgramLife(Struct, frozen=True, kw_only=True):
    """One process of a user's program inside the simulation.

    Shapes:  ended: how, as ``ended failed killed cancelled SIGTERM stopped``; None: it still ran.
             error_read: the test has looked at the error. paused: it was, when the run ended.
    """

    started_ms: Count
    ended_ms: Count | None = None
    ended: str | None = None
    error: str | None = None
    error_read: bool = False
    paused: bool = False

    @property
    def lasts(self) -> bool:
        """It ran when the run ended, and was not paused."""
        return self.ended in (None, "stopped") and not self.paused


class ProgramRun(Struct, frozen=True, kw_only=True):
    """A user's program inside the simulation, with its processes in their order.

    Shapes:  node: its id in the network.
    """

    name: str
    node: ClientNode
    lives: tuple[ProgramLife, ...] = named(name="incarnations")

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> ProgramRun:
        """A program as ``run.json`` has it."""
        return msgspec.convert(value, cls)


class Lacking(Struct, frozen=True):
    """Evidence that the recorder failed to record: a table, the znodes, or more than one (None)."""

    why: str
    lacks: str | None = None


class RunHeader(Value, kw_only=True):
    """The fields of ``run.json`` that others need; what is missing there is None or empty."""

    format: Count = 1
    seed: int | None = None
    mode: str | None = None
    runtime: str | None = None
    epoch_ms: Count | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    brokers: NodeIds = ()
    clients: Mapping[ClientNode, str] = field(default_factory=dict)  # client.id by node
    apps: tuple[ProgramRun, ...] = ()
    rules: Rules | None = None
    protocol: InterBrokerProtocol | None = None  # of a cluster on ZooKeeper
    ineligible_members_rejected: bool = True  # by the controller on ZooKeeper
    controllers: NodeIds = ()
    faults: tuple[str, ...] = ()
    hits: Mapping[str, Count] = field(default_factory=dict)
    exercises: tuple[str, ...] = ()
    trace_rows: Mapping[str, Count] = field(default_factory=dict)
    trace_hash: str | None = None
    repeat_trace_hash: str | None = None
    crashes: int | None = None
    controller_faults: int | None = None
    stale_indexes: NodeIds | None = None
    intercepted: tuple[str, ...] = ()  # functions of the test that saw clients' requests
    recorder_problems: tuple[Lacking, ...] = ()
    written: Mapping[str, WrittenFile] | None = None
    failure: ScenarioFailure | None = None
    scenario: Mapping[str, Any] | None = None
    steps: tuple[PerformedStep, ...] = ()
    ended_at_ms: Count | None = None
    healed_ms: Count | None = None
    bounds_ms: Mapping[str, Count] = field(default_factory=dict)
    minicluster: str | None = None

    @property
    def has_scenario(self) -> bool:
        """A scenario made the run."""
        return bool(self.scenario)


def read_header(path: Path) -> RunHeader:
    """Read ``run.json``.

    Errors:  DamagedHeader if it is not a JSON object; NotARun for a field of another type or range.
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
    try:
        return _header(content)
    except UserError as error:
        raise NotARun(f"{path}: {error}") from None


_OTHER_FORM = {
    "rules": str,
    "inter_broker_protocol": str,
    "crashes": list,
    "controller_faults": list,
}
_UNUSED = {"run_id": str, "metadata_version": str, "cluster_id": str, "events": Count}
_TYPES = {**get_type_hints(RunHeader, include_extras=True), **_OTHER_FORM, **_UNUSED}


def _header(content: Mapping[str, Any]) -> RunHeader:
    """The header in a JSON object, of which null is as good as nothing.

    Errors:  UserError that names the field.
    """
    if (version := _typed("format", content.get("format") or 1, Count)) > RUN_FORMAT:
        raise UserError(  # before its fields are read, which may differ
            f"a run folder of format {version}, and this minicluster reads formats up to "
            f"{RUN_FORMAT}: update minicluster"
        )
    for name, value in content.items():
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UserError(f"{name!a} holds text that is no UTF-8") from None
    values = {
        name: _typed(name, content[name], kind)
        for name, kind in _TYPES.items()
        if content.get(name) is not None
    }
    for name in ("crashes", "controller_faults"):
        if name in values:
            values[name] = len(values[name])
    if "rules" in values:
        values["rules"] = Rules.named(values["rules"])
    if "inter_broker_protocol" in values:
        values["protocol"] = InterBrokerProtocol.parse(values["inter_broker_protocol"])
    values["ineligible_members_rejected"] = content.get("ineligible_members_refused") is not False
    names = RunHeader.__struct_fields__
    header = RunHeader(**{name: value for name, value in values.items() if name in names})
    _check(header)
    return header


def _typed(name: str, value: Any, kind: Any) -> Any:
    if name == "failure" and isinstance(value, dict) and value.get("kind") == "unanswered":
        value = {**value, "kind": "no_response"}  # in runs of format 1
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        what, _, inside = str(error).partition(" - at ")
        where = inside.replace("`", "").replace("key in ", "a key of ").replace("$", name) or name
        raise UserError(f"{where}: {what[0].lower()}{what[1:]}") from None


def _check(header: RunHeader) -> None:
    """Reject what a type does not say.

    Errors:  UserError.
    """
    if (header.seed or 0).bit_length() > _SEED_BITS:
        raise UserError(f"seed: an integer of more than {_SEED_BITS} bits")
    for index, problem in enumerate(header.recorder_problems):
        if problem.lacks not in (None, *TABLES, ZNODES):
            name = f"recorder_problems[{index}].lacks"
            raise UserError(f"{name}: {problem.lacks!r} is no table of the trace")
    for name, file in (header.written or {}).items():
        inside = Path(name)
        if inside.is_absolute() or ".." in inside.parts or "\0" in name or not name:
            raise UserError(f"{WRITTEN}: {name!r} is no path in the run folder")
        if not _SHA256.fullmatch(file.sha256):
            raise UserError(f"{WRITTEN}.{name}.sha256: no SHA-256 in hexadecimal")
