"""``python -m tests.compiled``: a wheel with native code beside the pure one in ``dist``.

The pure wheel is built and unpacked; its modules of ``modules.ROOMS`` are rewritten, compiled by
mypyc and packed again, each beside its rewritten source, which tracebacks show.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.compiled import compiler, wheels
from tests.compiled.classes import find_classes
from tests.compiled.modules import DRAWS, PACKAGE, modules
from tests.compiled.rewrite import rewrite

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
BUILD = ROOT / "build" / "compiled"
# mypy has checked the package; what it finds here comes from the rewriting.
MYPY = (
    "--config-file=", "--ignore-missing-imports", "--check-untyped-defs",
    "--follow-imports=silent",
    *(
        f"--disable-error-code={code}"
        for code in (
            "attr-defined", "return-value", "assignment", "misc", "type-var", "call-arg",
            "arg-type", "method-assign",
        )
    ),
)  # fmt: skip
OPTIMIZE = "1"  # -O3 compiles twice as long, into code that takes more instructions
NO_COMPILER = 69


def main(args: Sequence[str]) -> int:
    """Build the wheel; its place is the last line."""
    if list(args):
        print("usage: python -m tests.compiled", file=sys.stderr)
        return 64
    missing = compiler.missing()
    if missing is not None:
        print(f"no C compiler: {missing} is not on PATH; install one (gcc)", file=sys.stderr)
        return NO_COMPILER
    shutil.rmtree(BUILD, ignore_errors=True)
    package = BUILD / "package"
    pure = build_pure_wheel()
    wheels.unpack(pure, package)
    write_sources(package)
    compile_sources(package)
    print(wheels.pack(package, pure, DIST))
    return 0


def build_pure_wheel() -> Path:
    """The wheel of the package as it is."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(BUILD / "pure"), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (built,) = (BUILD / "pure").glob("*.whl")
    DIST.mkdir(exist_ok=True)
    return Path(shutil.copy(built, DIST))


def write_sources(package: Path) -> None:
    """Rewrite the modules in the unpacked wheel."""
    compiled = modules()
    classes = find_classes(package, compiled)
    texts = {
        file: rewrite(package / file, file, module, classes) for module, file in compiled.items()
    }
    for file, text in texts.items():
        (package / file).write_text(text, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("declared.py"), package / PACKAGE / "_declared.py")
    shutil.copy(Path(__file__).with_name("draws.py"), package / DRAWS)
    print(f"rewritten: {len(texts)} modules", flush=True)


def compile_sources(package: Path) -> None:
    """Compile the rewritten modules in place, into one library."""
    from mypyc.build import mypycify  # takes a second to import

    os.chdir(package)
    print("mypyc reads them", flush=True)
    files = [*modules().values(), DRAWS]
    # A library that is "separate" takes instances of classes that mypyc has not seen, as those that
    # the runtime derives from actors.
    extensions = mypycify(
        [*MYPY, f"--cache-dir={BUILD / 'mypy'}", *files],
        multi_file=True,
        separate=[(files, PACKAGE)],
        target_dir=str(BUILD / "c"),
    )
    print(f"translated to C; {compiler.compiler()[0]} compiles", flush=True)
    compiler.build(extensions, into=package, objects=BUILD / "objects", optimize=OPTIMIZE)
    os.chdir(ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
