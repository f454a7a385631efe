"""Python source that is built line by line, each line knowing which fields it handles.

A compiled encoder or decoder does no bookkeeping about where it is. If it fails, the line of the
traceback gives the field, and the variables of its frame at which byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from minicluster.protocol.errors import ProtocolError, UnsupportedVersion
from minicluster.protocol.schema import Message

FORMATS = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "boolean": "?",
    "uuid": "16s",
}
UUID_BYTES = ".int.to_bytes(16, 'big')"
"""The conversion of a field that is a UUID into the value that is packed."""

SIZES = {name: struct.calcsize(">" + code) for name, code in FORMATS.items()}

Part = tuple[str, str, str]
"""One fixed-size field of a line: its path, its format, and (encoding) the value's expression."""


class Bad(Exception):
    """Raised by compiled code where bytes or a value are wrong."""


class Lacking(Exception):
    """Raised by compiled code where a version cannot carry what a field holds."""


# Whatever bad bytes can raise inside a compiled decoder, and bad values inside an encoder.
BAD_BYTES = (Bad, struct.error, IndexError, ValueError)
BAD_VALUES = (Bad, Lacking, struct.error, ValueError, TypeError, AttributeError, OverflowError)


class Source:
    """The source of one function, and the constants that it needs."""

    def __init__(self, title: str, constants: dict[str, Any]) -> None:
        self.title = title
        self.lines: list[str] = []
        self.parts: list[tuple[Part, ...]] = [()]
        self.depth = 0
        self.constants = dict(constants)
        self.structs: dict[str, str] = {}

    def add(self, text: str, path: str = "", parts: tuple[Part, ...] = ()) -> None:
        """Add a line at the current depth."""
        self.lines.append(" " * self.depth + text)
        self.parts.append(parts or ((path, "", ""),))

    def constant(self, value: Any) -> str:
        """The name or the text of a value that the function uses."""
        if value is None or isinstance(value, (bool, int, str, bytes)):
            return repr(value)
        if value == () and isinstance(value, tuple):
            return "()"
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def packer(self, format_: str, method: str) -> str:
        """The name of the compiled ``struct`` method for a big-endian format."""
        key = method + format_
        if key not in self.structs:
            self.structs[key] = self.constant(getattr(struct.Struct(">" + format_), method))
        return self.structs[key]

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    def function(self, name: str) -> Callable[..., Any]:
        """Compile it."""
        space: dict[str, Any] = {**self.constants, "_parts": self.parts}
        exec(compile(self.text, f"<{self.title}>", "exec"), space)
        return space[name]  # type: ignore[no-any-return]


def _compiled_frame(trace: TracebackType | None) -> tuple[FrameType, int] | None:
    """The frame of the compiled code that failed, and its line: the last one, of what it called.

    The error may have been raised further in (``uv``, ``struct``), where no line is known.
    """
    frame = None
    while trace is not None:
        if "_parts" in trace.tb_frame.f_globals:
            frame = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return frame


def _value_of(expression: str, code: str, variables: dict[str, Any]) -> Any:
    """The value that a line packs: a marker of one byte, a variable, or a field of one."""
    name, *fields = expression.removesuffix(UUID_BYTES).split(".")
    if name.isdecimal():
        return int(name)
    value = variables[name]
    for field in fields:
        value = getattr(value, field)
    return value.int.to_bytes(16, "big") if code == FORMATS["uuid"] else value


def explain_encoding(message: Message, version: int, error: Exception) -> ProtocolError:
    """The error with the field that could not be encoded, and why."""
    name = f"{type(message).__name__} v{version}"
    compiled = _compiled_frame(error.__traceback__)
    if compiled is None:
        return ProtocolError(name, "", f"cannot be encoded: {error}")
    frame, line = compiled
    parts: tuple[Part, ...] = frame.f_globals["_parts"][line]
    path, why = parts[0][0], str(error)
    # A line packs several fields in one call, and the error of that call names none of them.
    for part, code, expression in parts:
        if not code:
            continue
        try:
            value = _value_of(expression, code, frame.f_locals)
            struct.pack(">" + code, value)
        except (struct.error, AttributeError, TypeError, OverflowError) as single:
            path, why = part, str(single)
            break
    if isinstance(error, Lacking):
        return UnsupportedVersion(name, path, str(error))
    return ProtocolError(name, path, why)


def explain_decoding(cls: type[Message], version: int, size: int, error: Exception) -> Exception:
    """The error with the field and the byte at which the buffer stopped making sense."""
    name = f"{cls.__name__} v{version}"
    compiled = _compiled_frame(error.__traceback__)
    if compiled is None:
        return ProtocolError(name, "", f"cannot be decoded: {error}")
    frame, line = compiled
    parts: tuple[Part, ...] = frame.f_globals["_parts"][line]
    offset: int = frame.f_locals.get("p", 0)
    path = parts[0][0]
    if isinstance(error, (struct.error, IndexError)):
        for part, code, _ in parts:
            path = part
            width = struct.calcsize(">" + code) if code else 1
            if offset + width > size:
                break
            offset += width
        why = f"the buffer of {size} bytes ends too early"
    elif isinstance(error, UnicodeDecodeError):
        why = "the bytes are no UTF-8"
    else:
        why = str(error)
    return ProtocolError(name, path, why, offset=min(offset, size))
