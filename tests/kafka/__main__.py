"""``python -m tests.kafka fetch``: jars of Apache Kafka, and of Spark's connector to it.

They come from Maven Central into cache folders.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kafka.jars import (
    EARLIER_VERSION,
    former_tests_folder,
    jars_folder,
    missing,
    release_folder,
    spark_jars_folder,
    test_jars_folder,
)
from tests.maven import copy_jars

POMS = {
    "pom.xml": (jars_folder(), ()),
    # The last release of the line before, whose controller is compared as well.
    "earlier-pom.xml": (release_folder(EARLIER_VERSION), ()),
    "tests-pom.xml": (test_jars_folder(), ()),
    # The jar alone: what it needs is there, in a later release.
    "former-tests-pom.xml": (former_tests_folder(), ("kafka_2.13",)),
    # Its other jars are in pyspark.
    "spark-pom.xml": (
        spark_jars_folder(),
        (
            "spark-sql-kafka-0-10_2.13",
            "spark-token-provider-kafka-0-10_2.13",
            "kafka-clients",
            "commons-pool2",
        ),
    ),
}


def main(args: Sequence[str]) -> int:
    """Fetch the jars unless they are there."""
    if list(args) != ["fetch"]:
        print("usage: python -m tests.kafka fetch", file=sys.stderr)
        return 64
    for pom, (folder, artifacts) in POMS.items():
        failed = copy_jars(Path(__file__).with_name(pom), folder, artifacts)
        if failed:
            return failed
    why = missing()
    print(f"{jars_folder()}: {why or 'Apache Kafka is here'}")
    return 0 if why is None else 69


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
