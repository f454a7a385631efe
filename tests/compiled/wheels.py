"""Unpacks a pure wheel, and packs it again as one for this interpreter and this machine."""

from __future__ import annotations

import base64
import hashlib
import sys
import sysconfig
import zipfile
from pathlib import Path

# mypyc's modules import it for a decorator that only mypyc reads.
NEEDED = "Requires-Dist: mypy-extensions>=1"


def unpack(wheel: Path, folder: Path) -> None:
    """Write the files of a wheel into a folder."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)


def tag() -> str:
    """The interpreter, its binary interface and the machine, as names of wheels have them."""
    interpreter = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{interpreter}-{interpreter}-{platform}"


def pack(folder: Path, pure: Path, into: Path) -> Path:
    """Pack a folder under the name of its pure wheel with this machine's tag."""
    (information,) = folder.glob("*.dist-info")
    _replace(information / "WHEEL", "Root-Is-Purelib: true", "Root-Is-Purelib: false")
    _replace(information / "WHEEL", "Tag: py3-none-any", f"Tag: {tag()}")
    _replace(information / "METADATA", "Requires-Dist:", f"{NEEDED}\nRequires-Dist:")
    record = information / "RECORD"
    record.unlink()
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    packed = [path for path in found if "__pycache__" not in path.parts]
    lines = [_line(path, folder) for path in packed]
    lines.append(f"{record.relative_to(folder).as_posix()},,\n")
    record.write_text("".join(lines), encoding="utf-8")
    wheel = into / pure.name.replace("py3-none-any", tag())
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in [*packed, record]:
            archive.write(path, path.relative_to(folder).as_posix())
    return wheel


def _replace(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text, f"{path.name} has no line {before}"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


def _line(path: Path, folder: Path) -> str:
    data = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(folder).as_posix()},sha256={digest},{len(data)}\n"
