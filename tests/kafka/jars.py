"""Where Apache Kafka's jars and Java are on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from tests.java import java, javac
from tests.maven import cache_folder

VERSION = "4.3.0"
FORMER_VERSION = "4.0.0"
EARLIER_VERSION = "3.9.2"
CONNECTOR_VERSION = "4.2.0"


def jars_folder() -> Path:
    """The folder of the jars, whether it is there or not."""
    named = os.environ.get("MINICLUSTER_KAFKA_JARS")
    if named:
        return Path(named)
    return cache_folder(f"kafka-{VERSION}")


def release_folder(version: str) -> Path:
    """The folder of the jars of a release, whether it is there or not."""
    return jars_folder() if version == VERSION else jars_folder().with_name(f"kafka-{version}")


def release_missing(version: str) -> str | None:
    """The reason why the classes of a release cannot run here, None if they can."""
    if java() is None or javac() is None:
        return "there is no Java (java and javac) on the path"
    if not list(release_folder(version).glob(f"kafka_*-{version}.jar")):
        return f"no jars of Apache Kafka {version}: python -m tests.kafka fetch"
    return None


def spark_jars() -> list[Path]:
    """Spark's connector to Kafka and what it needs beside pyspark; none before they are fetched."""
    return sorted(spark_jars_folder().glob("*.jar"))


def spark_jars_folder() -> Path:
    """The folder of the connector's jars, whether it is there or not."""
    return jars_folder().with_name(f"spark-sql-kafka-{CONNECTOR_VERSION}")


def test_jars_folder() -> Path:
    """The folder of Kafka's test jars with all that they need, whether it is there or not."""
    return jars_folder().with_name(f"kafka-tests-{VERSION}")


def former_tests_folder() -> Path:
    """The folder of the last test jar with classes that no jar has any more, there or not.

    Kafka 4.1 moved them to clients-integration-tests, a module that it does not publish.
    """
    return jars_folder().with_name(f"kafka-tests-{FORMER_VERSION}")


def tests_missing() -> str | None:
    """The reason why Apache Kafka's own tests cannot run here, None if they can."""
    if java() is None or javac() is None:
        return "there is no Java (java and javac) on the path"
    for folder, version in ((test_jars_folder(), VERSION), (former_tests_folder(), FORMER_VERSION)):
        if not list(folder.glob(f"kafka_*-{version}-test.jar")):
            return f"no test jars of Apache Kafka {version}: python -m tests.kafka fetch"
    return None


def missing() -> str | None:
    """The reason why Apache Kafka cannot run here, None if it can."""
    if java() is None:
        return "there is no Java on the path"
    if not list(jars_folder().glob(f"kafka_*-{VERSION}.jar")):
        return f"no jars of Apache Kafka {VERSION}: python -m tests.kafka fetch"
    return None
