"""``python -m tests.kafka fetch``: Apache Kafka's jars, from Maven Central, into a cache folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kafka.jars import jars_folder, missing

POM = Path(__file__).with_name("pom.xml")


def main(args: Sequence[str]) -> int:
    """Fetch the jars unless they are there."""
    if list(args) != ["fetch"]:
        print("usage: python -m tests.kafka fetch", file=sys.stderr)
        return 64
    folder = jars_folder()
    maven = shutil.which("mvn")
    if maven is None:
        print("fetch: Maven (mvn) is not on the path", file=sys.stderr)
        return 69
    subprocess.run(
        [
            maven,
            "--quiet",
            "--batch-mode",
            f"--file={POM}",
            "dependency:copy-dependencies",
            f"-DoutputDirectory={folder}",
        ],
        check=True,
    )
    why = missing()
    print(f"{folder}: {why or 'Apache Kafka is here'}")
    return 0 if why is None else 69


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
