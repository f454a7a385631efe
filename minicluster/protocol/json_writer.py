"""Compiles the function that shows one version of a message in Kafka's JSON form."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from minicluster.protocol.schema import FieldSpec, Message, Struct
from minicluster.protocol.source import Bad, Lacking, Source
from minicluster.protocol.uuids import format_uuid

RecordsForm = Literal["base64", "blank", "size"]
"""The form of record batches: whole, as an empty text (so does Kafka), or by their size."""

JsonWriter = Callable[[Any], dict[str, Any]]


def _base64(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode("ascii")


_CONSTANTS: dict[str, Any] = {
    "Bad": Bad,
    "Lacking": Lacking,
    "uid": lru_cache(maxsize=65_536)(format_uuid),
    "b64": _base64,
    "size": len,
    "blank": lambda value: "",
}
_RECORDS = {"base64": "b64", "blank": "blank", "size": "size"}


class _Writer:
    """Writes the functions, one for each structure."""

    def __init__(
        self, cls: type[Message], version: int, records: RecordsForm, defaults: bool
    ) -> None:
        self.version, self.records, self.defaults = version, records, defaults
        self.flexible = version in cls.flexible_versions
        self.source = Source(f"{cls.__name__} v{version} json", _CONSTANTS)
        self.functions: dict[type[Struct], str] = {}

    def function(self, cls: type[Struct], path: str) -> str:
        """Write the function for a structure, after those for what it holds; its name."""
        if cls in self.functions:
            return self.functions[cls]
        for spec in cls.schema:
            if spec.struct is not None and self.version in spec.versions:
                self.function(spec.struct, f"{path}{spec.name}.")
        name = self.functions[cls] = f"f{len(self.functions)}"
        self.source.add(f"def {name}(o):")
        self.source.depth = 1
        self.source.add("d = {}")
        for spec in cls.schema:
            self.field(spec, f"o.{spec.name}", f"{path}{spec.name}")
        self.source.add("return d")
        self.source.depth = 0
        return name

    def field(self, spec: FieldSpec, value: str, path: str) -> None:
        """Show one field, unless it is tagged and at its default."""
        add = self.source.add
        differs = f"{value} != {self.source.constant(spec.default)}"
        if self.version not in spec.versions:
            if not spec.ignorable:
                add(f"if {differs}:", path)
                add(" raise Lacking('this version cannot carry the field')", path)
            return
        if self.version not in spec.nullable and spec.type_ in ("string", "bytes", "records"):
            add(f"if {value} is None:", path)
            add(" raise Bad('it must not be null')", path)
        size = spec.type_ == "records" and self.records == "size"
        name = spec.json_name + ("SizeInBytes" if size else "")
        tagged = self.flexible and self.version in spec.tagged and not self.defaults
        if tagged:
            add(f"if {differs}:", path)
        shown = self.shown(spec, value)
        if self.version in spec.nullable and shown != value:
            shown = f"(None if {value} is None else {shown})"
        add(f"{' ' if tagged else ''}d[{name!r}] = {shown}", path)

    def shown(self, spec: FieldSpec, value: str) -> str:
        """The expression for a field that is not null."""
        if spec.type_ != "array":
            wrap = self.wrapper(spec)
            return f"{wrap}({value})" if wrap else value
        wrap = self.wrapper(spec)
        return f"[{wrap}(x) for x in {value}]" if wrap else f"list({value})"

    def wrapper(self, spec: FieldSpec) -> str:
        """The function that shows a value; none if JSON has it as it is."""
        if spec.struct is not None:
            return self.functions[spec.struct]
        if spec.element == "records":
            return _RECORDS[self.records]
        return {"uuid": "uid", "bytes": "b64"}.get(spec.element, "")


def compile_json_writer(
    cls: type[Message], version: int, records: RecordsForm, defaults: bool
) -> JsonWriter:
    """The function that shows a message of this version."""
    writer = _Writer(cls, version, records, defaults)
    return writer.source.function(writer.function(cls, ""))
