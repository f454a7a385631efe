"""Compiles the encoder of one version of a message.

Fixed-size neighbours become one ``struct`` call. The parts of a body are gathered in a list and
joined once. What it writes for a broker's id, its epoch and its ISR, in a flexible version (``a``
appends to the list, the constants ``c`` are ``struct`` methods)::

    def run(m):
     out = []
     a = out.append
     a(c23(m.broker_id, m.epoch))
     v1 = m.isr
     if v1 is None:
      raise Bad('it must not be null')
     n2 = len(v1)
     if n2 < 64:
      a(short_int32[n2](n2 + 1, *v1))
     else:
      a(uv(n2 + 1) + pack(f'>{n2}i', *v1))
     a(c24())
     return b''.join(out)

The last byte, ``c24``, says that there are no tagged fields. What a version cannot carry raises
``UnsupportedVersion``, unless the field is ignorable or holds its default.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from minicluster.protocol.schema import FieldSpec, Message, Struct
from minicluster.protocol.source import FORMATS, SIZES, UUID_BYTES, Bad, Lacking, Part, Source
from minicluster.protocol.varint import SINGLE, encode_uvarint

MAX_STRING_BYTES = 0x7FFF
_SHORT = 64
"""Arrays below this length have a compiled ``struct`` each, with one byte for the length."""


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)) or hasattr(value, "__bytes__"):
        return bytes(value)
    raise Bad(f"{type(value).__name__} is not bytes")


def _uuids(values: tuple[UUID, ...]) -> bytes:
    return b"".join([value.int.to_bytes(16, "big") for value in values])


class _Arrays(dict[int, Callable[..., bytes]]):
    """The ``struct`` method that packs a length and so many numbers, by that many."""

    def __init__(self, prefix: str, code: str) -> None:
        self.prefix, self.code = prefix, code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = struct.Struct(f">{self.prefix}{count}{self.code}").pack
        if count < _SHORT:
            self[count] = pack
        return pack


_CONSTANTS: dict[str, Any] = {
    "Bad": Bad,
    "Lacking": Lacking,
    "B": SINGLE,
    "uv": encode_uvarint,
    "as_bytes": _as_bytes,
    "uuids": _uuids,
    "pack": struct.pack,
    **{f"short_{name}": _Arrays("B", code) for name, code in FORMATS.items() if name != "uuid"},
    **{f"long_{name}": _Arrays("i", code) for name, code in FORMATS.items() if name != "uuid"},
}


class _Encoder:
    """Writes the lines; each method those that write one thing.

    Fields of a fixed size gather in ``run``. ``sink`` is the name of the function that takes the
    bytes: while a tagged field is written, whose size goes before it, that of a list of its own.
    """

    def __init__(self, cls: type[Message], version: int) -> None:
        self.version = version
        self.flexible = version in cls.flexible_versions
        self.source = Source(f"{cls.__name__} v{version} encode", _CONSTANTS)
        self.run: list[Part] = []
        self.names = 0
        self.sink = "a"

    def name(self, letter: str) -> str:
        """A new name for a local variable."""
        self.names += 1
        return f"{letter}{self.names}"

    def flush(self) -> None:
        """Write the fixed-size fields that have gathered."""
        if not self.run:
            return
        pack = self.source.packer("".join(part[1] for part in self.run), "pack")
        values = ", ".join(part[2] for part in self.run if part[2])
        parts = tuple(part for part in self.run if part[2]) or (self.run[0],)
        self.source.add(f"{self.sink}({pack}({values}))", parts=parts)
        self.run = []

    def struct(self, cls: type[Struct], var: str, path: str) -> None:
        """Write a structure: its fields in order, then its tagged fields by tag."""
        tagged: list[FieldSpec] = []
        for spec in cls.schema:
            field_path = f"{path}{spec.name}"
            if self.version not in spec.versions:
                if not spec.ignorable:
                    self.reject(spec, f"{var}.{spec.name}", field_path)
            elif self.version in spec.tagged and self.flexible:
                tagged.append(spec)
            else:
                self.field(spec, f"{var}.{spec.name}", field_path)
        if not self.flexible:
            return
        if not tagged:
            self.run.append((f"{path}tags", "x", ""))
            return
        self.flush()
        tagged.sort(key=lambda spec: spec.tag or 0)
        self.tags(tagged, var, path)

    def reject(self, spec: FieldSpec, value: str, path: str) -> None:
        """Raise if a field that the version lacks holds something."""
        self.source.add(f"if {self.differs(spec, value)}:", path)
        self.source.add(" raise Lacking('this version cannot carry the field')", path)

    def differs(self, spec: FieldSpec, value: str) -> str:
        """The condition that a field does not hold its default."""
        if spec.default is None:
            return f"{value} is not None"
        if spec.default is False:
            return value
        if spec.default is True:
            return f"not {value}"
        default = self.source.constant(spec.default)
        if spec.type_ == "struct":  # most hold the very default
            return f"{value} is not {default} and {value} != {default}"
        return f"{value} != {default}"

    def tags(self, specs: list[FieldSpec], var: str, path: str) -> None:
        """Write how many tagged fields hold something, and these."""
        conditions = [self.differs(spec, f"{var}.{spec.name}") for spec in specs]
        count = self.name("n")
        total = " + ".join(f"(1 if {condition} else 0)" for condition in conditions)
        self.source.add(f"{count} = {total}", f"{path}tags")
        self.source.add(f"{self.sink}(B[{count}])", f"{path}tags")
        self.source.add(f"if {count}:", f"{path}tags")
        self.source.depth += 1
        for spec, condition in zip(specs, conditions, strict=True):
            field_path = f"{path}{spec.name}"
            value = f"{var}.{spec.name}"
            tag = encode_uvarint(spec.tag or 0)
            self.source.add(f"if {condition}:", field_path)
            self.source.depth += 1
            if spec.type_ in SIZES:
                head = tag + encode_uvarint(SIZES[spec.type_])
                pack = self.source.packer(f"{len(head)}s{FORMATS[spec.type_]}", "pack")
                expression = value + UUID_BYTES if spec.type_ == "uuid" else value
                self.source.add(
                    f"{self.sink}({pack}({head!r}, {expression}))",
                    parts=((field_path, FORMATS[spec.type_], expression),),
                )
            else:
                self.sized(spec, value, field_path, tag)
            self.source.depth -= 1
        self.source.depth -= 1

    def sized(self, spec: FieldSpec, value: str, path: str, tag: bytes) -> None:
        """Write a tag, the size of its field and the field."""
        outer, inner, data = self.sink, self.name("s"), self.name("x")
        self.source.add(f"{data} = []", path)
        self.source.add(f"{inner} = {data}.append", path)
        self.sink = inner
        self.field(spec, value, path)
        self.flush()
        self.sink = outer
        self.source.add(f"{data} = b''.join({data})", path)
        self.source.add(f"{outer}({tag!r} + uv(len({data})) + {data})", path)

    def field(self, spec: FieldSpec, value: str, path: str) -> None:
        """Write one field."""
        if spec.type_ in FORMATS:
            expression = value + UUID_BYTES if spec.type_ == "uuid" else value
            self.run.append((path, FORMATS[spec.type_], expression))
            return
        self.flush()
        local = self.name("v")
        self.source.add(f"{local} = {value}", path)
        self.source.add(f"if {local} is None:", path)
        if self.version in spec.nullable:
            self.source.add(f" {self.sink}({self.null(spec)!r})", path)
            self.source.add("else:", path)
            self.source.depth += 1
        elif spec.nullable:
            self.source.add(" raise Lacking('this version cannot carry null')", path)
        else:
            self.source.add(" raise Bad('it must not be null')", path)
        compact = self.flexible and (spec.flexible is None or self.version in spec.flexible)
        self.present(spec, local, path, compact)
        self.flush()
        if self.version in spec.nullable:
            self.source.depth -= 1

    def null(self, spec: FieldSpec) -> bytes:
        """The bytes of null."""
        compact = self.flexible and (spec.flexible is None or self.version in spec.flexible)
        if spec.type_ == "struct":
            return b"\0" if self.version in spec.tagged else b"\xff"
        if compact:
            return b"\0"
        return b"\xff\xff" if spec.type_ == "string" else b"\xff\xff\xff\xff"

    def present(self, spec: FieldSpec, value: str, path: str, compact: bool) -> None:
        """Write a field of variable size that is not null."""
        if spec.type_ == "array":
            self.array(spec, value, path, compact)
        elif spec.type_ == "struct":
            if spec.nullable and self.version in spec.nullable:
                self.run.append((path, "b", "1"))
            assert spec.struct is not None
            self.struct(spec.struct, value, path + ".")
        else:
            self.blob(spec.type_, value, path, compact)

    def blob(self, type_: str, value: str, path: str, compact: bool) -> None:
        """Write a string, bytes or records."""
        add, data, size = self.source.add, self.name("d"), self.name("n")
        if type_ == "string":
            add(f"{data} = {value}.encode()", path)
            add(f"{size} = len({data})", path)
            add(f"if {size} > {MAX_STRING_BYTES}:", path)
            add(f" raise Bad(f'{{{size}}} bytes are too long for a string')", path)
        else:
            add(f"{data} = {value} if {value}.__class__ is bytes else as_bytes({value})", path)
            add(f"{size} = len({data})", path)
        if compact:
            add(f"{self.sink}(B[{size} + 1] if {size} < 127 else uv({size} + 1))", path)
        else:
            code = "h" if type_ == "string" else "i"
            pack = self.source.packer(code, "pack")
            add(f"{self.sink}({pack}({size}))", parts=((path, code, size),))
        add(f"{self.sink}({data})", path)

    def array(self, spec: FieldSpec, value: str, path: str, compact: bool) -> None:
        """Write a length and so many elements; numbers in one call."""
        add, size = self.source.add, self.name("n")
        add(f"{size} = len({value})", path)
        if spec.element in FORMATS and spec.element != "uuid":
            if compact:
                code = FORMATS[spec.element]
                add(f"if {size} < {_SHORT}:", path)
                add(f" {self.sink}(short_{spec.element}[{size}]({size} + 1, *{value}))", path)
                add("else:", path)
                add(f" {self.sink}(uv({size} + 1) + pack(f'>{{{size}}}{code}', *{value}))", path)
            else:
                add(f"{self.sink}(long_{spec.element}[{size}]({size}, *{value}))", path)
            return
        if compact:
            add(f"{self.sink}(B[{size} + 1] if {size} < 127 else uv({size} + 1))", path)
        else:
            pack = self.source.packer("i", "pack")
            add(f"{self.sink}({pack}({size}))", parts=((path, "i", size),))
        if spec.element == "uuid":
            add(f"{self.sink}(uuids({value}))", path)
            return
        item = self.name("o")
        add(f"for {item} in {value}:", path)
        self.source.depth += 1
        if spec.struct is not None:
            before = len(self.source.lines)
            self.struct(spec.struct, item, path + ".")
            self.flush()
            if len(self.source.lines) == before:
                add("pass", path)
        else:
            self.blob(spec.element, item, path, compact)
        self.source.depth -= 1


def compile_encoder(cls: type[Message], version: int) -> Callable[[Any], bytes]:
    """The function that turns a message into the bytes of this version."""
    return encoder_source(cls, version).function("run")


def encoder_source(cls: type[Message], version: int) -> Source:
    """The source of that function."""
    encoder = _Encoder(cls, version)
    source = encoder.source
    source.add("def run(m):")
    source.depth = 1
    source.add("out = []")
    source.add("a = out.append")
    encoder.struct(cls, "m", "")
    encoder.flush()
    source.add("return b''.join(out)")
    return source
