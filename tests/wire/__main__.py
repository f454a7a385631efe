"""``python -m tests.wire FILE… [--format text|json] [--show N]``.

Prints per message how many lines agree, differ and are not declared. Exits with 1 if a declared
message differs, with 64 if a file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from minicluster.errors import UserError
from tests.wire.compare import Tally, compare


def _span(versions: set[int]) -> str:
    if not versions:
        return "-"
    first, last = min(versions), max(versions)
    if len(versions) == last - first + 1:
        return f"{first}-{last}" if last > first else str(first)
    return ",".join(map(str, sorted(versions)))


def _as_dict(name: str, tally: Tally) -> dict[str, Any]:
    return {
        "name": name,
        "kind": tally.kind,
        "api_key": tally.api_key,
        "versions": sorted(tally.versions),
        "agree": tally.agree,
        "differ": tally.differ,
        "not_declared": tally.not_declared,
        "missing_versions": sorted(tally.missing_versions),
        "differences": tally.differences,
    }


def _total(tallies: dict[str, Tally]) -> dict[str, int]:
    return {
        "messages": len(tallies),
        "lines": sum(tally.lines for tally in tallies.values()),
        "agree": sum(tally.agree for tally in tallies.values()),
        "differ": sum(tally.differ for tally in tallies.values()),
        "not_declared": sum(tally.not_declared for tally in tallies.values()),
    }


def _print_text(path: Path, tallies: dict[str, Tally]) -> None:
    print(path)
    width = max((len(name) for name in tallies), default=7)
    print(f"  {'message':{width}}  versions  agree  differ  not declared")
    for name, tally in tallies.items():
        row = f"  {name:{width}}  {_span(tally.versions):>8}  {tally.agree:>5}  {tally.differ:>6}"
        missing = f" (v{_span(tally.missing_versions)})" if tally.not_declared else ""
        print(f"{row}  {tally.not_declared:>12}{missing}")
        for text in tally.differences:
            print(f"    {text}")
    total = _total(tallies)
    print(
        f"  {total['messages']} messages, {total['lines']} lines: {total['agree']} agree, "
        f"{total['differ']} differ, {total['not_declared']} not declared"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.wire", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--show", type=int, default=3, help="differences shown per message")
    options = parser.parse_args(arguments)
    results: dict[Path, dict[str, Tally]] = {}
    try:
        for path in options.files:
            results[path] = compare(path, options.show)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if options.format == "json":
        files = [
            {
                "file": str(path),
                "total": _total(tallies),
                "messages": [_as_dict(name, tally) for name, tally in tallies.items()],
            }
            for path, tallies in results.items()
        ]
        print(json.dumps({"files": files}, indent=1))
    else:
        for path, tallies in results.items():
            _print_text(path, tallies)
    return int(any(tally.differ for tallies in results.values() for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
