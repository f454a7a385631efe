"""Compiles the decoder of one version of a message.

What it writes for a broker's id, its epoch and its ISR (numbers, which is one array), in a flexible
version; the constants ``c`` are a class and a ``struct`` method::

    def run(b, p, e):
     m_broker_id, m_epoch, n1 = c12(b, p)
     p += 13
     if n1 > 127:
      n1, p = uv(b, p - 1)
     n1 -= 1
     if n1 < 0:
      raise Bad('it must not be null')
     if n1 * 4 > e - p:
      raise Bad(f'{n1} elements, but {e - p} bytes are left')
     m_isr = array_int32[n1](b, p)
     p += n1 * 4
     …
     m = c13(broker_id=m_broker_id, epoch=m_epoch, isr=m_isr)

One call reads all neighbours of a fixed size, and the first byte of the length behind them with
them: most lengths are one byte, and Python pays by the call. The lines left out here skip tagged
fields.

A length is compared with what is left of the buffer before anything is made of it, so that memory
grows with the buffer and never with a number in it. Unknown tags are skipped.

An element may take two bytes and cost a hundred. So what strangers send is decoded with a limit to
all elements of a message; of a set those count that differ.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from minicluster.protocol.encoder import MAX_STRING_BYTES
from minicluster.protocol.schema import FieldSpec, Message, Struct
from minicluster.protocol.source import FORMATS, SIZES, Bad, Part, Source
from minicluster.protocol.uuids import uuid_of
from minicluster.protocol.varint import decode_uvarint

_SHORT = 64
"""Arrays below this length have a compiled ``struct`` each; for others a lookup gains nothing."""


class _Arrays(dict[int, Callable[..., tuple[Any, ...]]]):
    """The ``struct`` method that unpacks so many numbers, by that many."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, count: int) -> Callable[..., tuple[Any, ...]]:
        format_ = self.code * count if len(self.code) > 1 else f"{count}{self.code}"
        unpack = struct.Struct(">" + format_).unpack_from
        if count < _SHORT:
            self[count] = unpack
        return unpack


_CONSTANTS: dict[str, Any] = {
    "Bad": Bad,
    "uv": decode_uvarint,
    "uid": uuid_of,
    **{f"array_{name}": _Arrays(code) for name, code in FORMATS.items()},
}


def _smallest(cls: type[Struct], version: int, flexible: bool) -> int:
    """The least number of bytes of a structure."""
    total = 1 if flexible else 0
    for spec in cls.schema:
        if version not in spec.versions or (version in spec.tagged and flexible):
            continue
        if spec.type_ in SIZES:
            total += SIZES[spec.type_]
        elif spec.type_ == "struct" or flexible:
            total += 1  # at least: of a nested structure this does not look further
        else:
            total += 2 if spec.type_ == "string" else 4
    return total


class _Decoder:
    """Writes the lines; each method those that read one thing.

    Fields of a fixed size gather in ``run`` until something of variable size comes. What such a
    field needs besides waits in ``after``: it can follow only behind the one call that reads all.
    """

    def __init__(self, cls: type[Message], version: int, elements_max: int | None) -> None:
        self.version = version
        self.elements_max = elements_max
        self.flexible = version in cls.flexible_versions
        self.source = Source(f"{cls.__name__} v{version} decode", _CONSTANTS)
        self.run: list[Part] = []
        self.after: list[tuple[str, str]] = []
        self.names = 0

    def name(self, letter: str) -> str:
        """A new name for a local variable."""
        self.names += 1
        return f"{letter}{self.names}"

    def flush(self) -> None:
        """Read the fixed-size fields that have gathered."""
        if not self.run:
            return
        codes = "".join(part[1] for part in self.run)
        unpack = self.source.packer(codes, "unpack_from")
        targets = ", ".join(part[2] for part in self.run)
        comma = "," if len(self.run) == 1 else ""
        self.source.add(f"{targets}{comma} = {unpack}(b, p)", parts=tuple(self.run))
        self.source.add(f"p += {struct.calcsize('>' + codes)}")
        for line, path in self.after:
            self.source.add(line, path)
        self.run, self.after = [], []

    def struct(self, cls: type[Struct], var: str, path: str) -> None:
        """Read a structure; fields that the version lacks keep their default."""
        tagged: list[FieldSpec] = []
        values: list[str] = []
        for spec in cls.schema:
            if self.version not in spec.versions:
                continue
            target, field_path = f"{var}_{spec.name}", f"{path}{spec.name}"
            values.append(f"{spec.name}={target}")
            if self.flexible and self.version in spec.tagged:
                tagged.append(spec)
                self.source.add(f"{target} = {self.source.constant(spec.default)}", field_path)
            else:
                self.field(spec, target, field_path)
        if self.flexible:
            self.tags(tagged, var, path)
        else:
            self.flush()
        self.source.add(f"{var} = {self.source.constant(cls)}({', '.join(values)})", path)

    def tags(self, specs: list[FieldSpec], var: str, path: str) -> None:
        """Read the tagged fields; what is not known is passed over."""
        add, where = self.source.add, f"{path}tags"
        count, tag, size, end = (self.name(letter) for letter in "ktnq")
        self.byte(count, where)
        add(f"if {count}:", where)
        self.source.depth += 1
        self.wide(count, where)
        add(f"for _ in range({count}):", where)
        self.source.depth += 1
        add(f"{tag}, p = uv(b, p)", where)
        add(f"{size}, p = uv(b, p)", where)
        add(f"{end} = p + {size}", where)
        add(f"if {end} > e:", where)
        add(f" raise Bad(f'a tag of {{{size}}} bytes, but {{e - p}} are left')", where)
        word = "if"
        for spec in specs:
            field_path = f"{path}{spec.name}"
            add(f"{word} {tag} == {spec.tag}:", field_path)
            word = "elif"
            self.source.depth += 1
            self.field(spec, f"{var}_{spec.name}", field_path)
            self.flush()
            add(f"if p != {end}:", field_path)
            add(
                f" raise Bad(f'the field is not as long as its size, {{{size}}} bytes')", field_path
            )
            self.source.depth -= 1
        if specs:
            add("else:", where)
            self.source.depth += 1
        add(f"p = {end}", where)
        self.source.depth -= 3 if specs else 2

    def byte(self, number: str, path: str) -> None:
        """Read one byte, together with the fixed-size fields before it if there are any."""
        if self.run:
            self.run.append((path, "B", number))
            self.flush()
        else:
            self.source.add(f"{number} = b[p]", path)
            self.source.add("p += 1", path)

    def wide(self, number: str, path: str) -> None:
        """Read the rest of a varint whose first byte is not its last."""
        self.source.add(f"if {number} > 127:", path)
        self.source.add(f" {number}, p = uv(b, p - 1)", path)

    def length(self, number: str, path: str, compact: bool, code: str) -> None:
        """Read a length; one that is below zero means null."""
        if compact:
            self.byte(number, path)
            self.wide(number, path)
            self.source.add(f"{number} -= 1", path)
        else:
            self.run.append((path, code, number))
            self.flush()

    def field(self, spec: FieldSpec, target: str, path: str) -> None:
        """Read one field."""
        if spec.type_ == "uuid":
            local = self.name("u")
            self.run.append((path, "16s", local))
            self.after.append((f"{target} = uid({local})", path))
            return
        if spec.type_ in FORMATS:
            self.run.append((path, FORMATS[spec.type_], target))
            return
        compact = self.flexible and (spec.flexible is None or self.version in spec.flexible)
        nullable = self.version in spec.nullable
        if spec.type_ == "struct":
            self.flush()
            self.nested(spec, target, path, nullable)
            return
        size = self.name("n")
        self.length(size, path, compact, "h" if spec.type_ == "string" else "i")
        self.source.add(f"if {size} < 0:", path)
        if nullable:
            self.source.add(f" {target} = None", path)
            self.source.add("else:", path)
            self.source.depth += 1
        else:
            self.source.add(" raise Bad('it must not be null')", path)
        if spec.type_ == "array":
            self.array(spec, target, size, path, compact)
        else:
            self.blob(spec.type_, target, size, path)
        if nullable:
            self.source.depth -= 1

    def nested(self, spec: FieldSpec, target: str, path: str, nullable: bool) -> None:
        """Read one structure, which may be null: then a byte in front marks it.

        Null is -1, but of a tagged structure 0, since its mark is a varint without a sign.

        Source:  MessageDataGenerator.generateVariableLengthReader, StructSpec of a tagged field.
        """
        assert spec.struct is not None
        local = self.name("o")
        if nullable:
            flag = self.name("n")
            unpack = self.source.packer("b", "unpack_from")
            self.source.add(f"{flag}, = {unpack}(b, p)", path)
            self.source.add("p += 1", path)
            lowest = 1 if self.version in spec.tagged else 0
            self.source.add(f"if {flag} < {lowest}:", path)
            self.source.add(f" {target} = None", path)
            self.source.add("else:", path)
            self.source.depth += 1
        self.struct(spec.struct, local, path + ".")
        self.source.add(f"{target} = {local}", path)
        if nullable:
            self.source.depth -= 1

    def blob(self, type_: str, target: str, size: str, path: str) -> None:
        """Read a string, bytes or records whose size is known."""
        add, end = self.source.add, self.name("q")
        add(f"{end} = p + {size}", path)
        add(f"if {end} > e:", path)
        add(f" raise Bad(f'{{{size}}} bytes, but {{e - p}} are left')", path)
        if type_ == "string":
            add(f"if {size} > {MAX_STRING_BYTES}:", path)
            add(f" raise Bad(f'{{{size}}} bytes are too long for a string')", path)
            add(f"{target} = str(b[p:{end}], 'utf-8')", path)
        else:
            add(f"{target} = b[p:{end}]", path)
        add(f"p = {end}", path)

    def array(self, spec: FieldSpec, target: str, size: str, path: str, compact: bool) -> None:
        """Read so many elements; numbers in one call."""
        add = self.source.add
        if spec.struct is not None:
            smallest = _smallest(spec.struct, self.version, self.flexible)
        else:
            smallest = SIZES.get(spec.element, 1 if compact else 2)
        # Elements without a field in this version cost a sender nothing: at least one byte each is
        # expected, so that a length of two billion is not believed.
        smallest = max(1, smallest)
        add(f"if {size} * {smallest} > e - p:", path)
        add(f" raise Bad(f'{{{size}}} elements, but {{e - p}} bytes are left')", path)
        counts_once = spec.is_set and self.elements_max is not None
        if not counts_once:
            self.count(size, path)
        if spec.element in FORMATS:
            values = f"array_{spec.element}[{size}](b, p)"
            add(f"{target} = {f'tuple(map(uid, {values}))' if smallest == 16 else values}", path)
            add(f"p += {size} * {smallest}", path)
            return
        values, item = self.name("l"), self.name("o")
        add(f"{values} = []", path)
        if counts_once:
            seen, start = self.name("s"), self.name("q")
            add(f"{seen} = set()", path)
        add(f"for _ in range({size}):", path)
        self.source.depth += 1
        if counts_once:
            add(f"{start} = p", path)
        if spec.struct is not None:
            self.struct(spec.struct, item, path + ".")
        else:
            inner = self.name("n")
            self.length(inner, path, compact, "h" if spec.element == "string" else "i")
            add(f"if {inner} < 0:", path)
            add(" raise Bad('it must not be null')", path)
            self.blob(spec.element, item, inner, path)
        if counts_once:
            add(f"if b[{start}:p] in {seen}:", path)
            add(" continue", path)
            add(f"{seen}.add(b[{start}:p])", path)
            self.count("1", path)
        add(f"{values}.append({item})", path)
        self.source.depth -= 1
        add(f"{target} = tuple({values})", path)

    def count(self, more: str, path: str) -> None:
        """Count elements, if they are limited."""
        limit = self.elements_max
        if limit is not None:
            self.source.add(f"c += {more}", path)
            self.source.add(f"if c > {limit}:", path)
            self.source.add(
                f" raise Bad(f'{{c}} elements or more; at most {limit} are read')", path
            )


def compile_decoder(
    cls: type[Message], version: int, elements_max: int | None = None
) -> Callable[[bytes, int, int], tuple[Any, int]]:
    """The function that reads a message of this version out of a buffer, from p to before e.

    Shapes:  elements_max: of all its arrays.
    """
    return decoder_source(cls, version, elements_max).function("run")


def decoder_source(cls: type[Message], version: int, elements_max: int | None = None) -> Source:
    """The source of that function."""
    decoder = _Decoder(cls, version, elements_max)
    source = decoder.source
    source.add("def run(b, p, e):")
    source.depth = 1
    if elements_max is not None:
        source.add("c = 0")
    decoder.struct(cls, "m", "")
    source.add("return m, p")
    return source
