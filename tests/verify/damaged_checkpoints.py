"""Checkpoints with something wrong in their bytes, in each way that a disk or a copy leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from minicluster.log.heads import batch_heads

Damage = Callable[[Path], bytes]


def a_flipped_bit(file: Path) -> bytes:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    return bytes(content)


def half(file: Path) -> bytes:
    content = file.read_bytes()
    return content[: len(content) // 2]


def no_header(file: Path) -> bytes:
    return file.read_bytes()[next(batch_heads(file)).end :]


def no_footer(file: Path) -> bytes:
    *_, footer = batch_heads(file)
    return file.read_bytes()[: footer.position]


def nothing(file: Path) -> bytes:
    return b""


def zeros(file: Path) -> bytes:
    return bytes(file.stat().st_size)


def text(file: Path) -> bytes:
    return b"<html>404 Not Found</html>" * 9


def zeros_behind(file: Path) -> bytes:
    return file.read_bytes() + bytes(4096)


def twice(file: Path) -> bytes:
    return 2 * file.read_bytes()


KINDS: tuple[Damage, ...] = (
    a_flipped_bit, half, no_header, no_footer, nothing, zeros, text, zeros_behind, twice,
)  # fmt: skip


def damage(file: Path, kind: Damage) -> None:
    """Damage a file that may be read-only."""
    content = kind(file)
    file.chmod(0o600)
    file.write_bytes(content)
