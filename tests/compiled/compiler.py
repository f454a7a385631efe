"""Compiles and links the C files of mypyc, as many at a time as there are processors.

setuptools would compile one file after the other, and mypyc's runtime once per library.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

EXTENSION: str = sysconfig.get_config_var("EXT_SUFFIX")
# C that nobody has written; a table of exports is in a header of each of its users.
OPTIONS = ("-w", "-DNDEBUG", "-fwrapv", "-fcommon")


class CompilerFailed(Exception):
    """The compiler's own words on a file."""


def compiler() -> list[str]:
    """The command of the C compiler with which the interpreter was built."""
    return shlex.split(sysconfig.get_config_var("CC") or "cc")


def missing() -> str | None:
    """The name of the compiler, where there is none on this machine."""
    name = compiler()[0]
    return None if shutil.which(name) else name


def build(extensions: Sequence[Any], *, into: Path, objects: Path, optimize: str) -> None:
    """Build libraries below a folder, and print each of more than one file when it is done.

    Errors:  CompilerFailed.
    """
    begun = time.monotonic()
    objects.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        made: dict[str, Future[Path]] = {}
        for extension in extensions:
            for source in extension.sources:
                if source not in made:
                    folders = extension.include_dirs
                    made[source] = pool.submit(_compile, source, folders, objects, optimize)
        try:
            for extension in extensions:
                parts = [made[source].result() for source in extension.sources]
                _link(parts, into / (extension.name.replace(".", "/") + EXTENSION))
                if len(parts) > 1:  # else a module's entry into the library of its room
                    seconds = round(time.monotonic() - begun)
                    print(f"{seconds:5} s  {extension.name}: {len(parts)} files", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)


def _compile(source: str, folders: Sequence[str], objects: Path, optimize: str) -> Path:
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]  # files of one name are many
    made = objects / f"{Path(source).stem[-60:]}_{digest}.o"
    position = shlex.split(sysconfig.get_config_var("CCSHARED") or "-fPIC")
    included = [sysconfig.get_paths()["include"], *folders]
    _run(
        [
            *compiler(), "-c", *position, f"-O{optimize}", *OPTIONS,
            *(f"-I{folder}" for folder in included), source, "-o", str(made),
        ]
    )  # fmt: skip
    return made


def _link(parts: Sequence[Path], library: Path) -> None:
    command = shlex.split(sysconfig.get_config_var("LDSHARED"))
    _run([*command, *map(str, parts), "-o", str(library)])


def _run(command: Sequence[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise CompilerFailed(ran.stderr.strip())
