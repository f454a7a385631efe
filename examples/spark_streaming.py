"""A pipeline of Spark Structured Streaming, tested without a cluster to reach or to set up.

A transactional producer writes orders and aborts some of them. The pipeline reads what is
committed, writes it in upper case to another topic, and goes on from its checkpoint after the
leader of that topic has died.

    python examples/spark_streaming.py                     # Spark downloads its Kafka connector
    python examples/spark_streaming.py --jars a.jar,b.jar  # or has its jars here

Needs minicluster, pyspark, a Java 17 and confluent-kafka.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import confluent_kafka
from pyspark.sql import SparkSession, functions

from minicluster import MiniCluster

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
SOURCE, SINK = "orders", "shipments"


def run_pipeline(spark: SparkSession, servers: str, checkpoint: str) -> None:
    """The pipeline under test: all that is in the source now, and no more."""
    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", SOURCE)
        .option("startingOffsets", "earliest")
        .load()
    )
    shipments = orders.select(functions.upper(orders.value.cast("string")).alias("value"))
    query = (
        shipments.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", SINK)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def write(producer: confluent_kafka.Producer, *values: str, commit: bool = True) -> None:
    """Write some values in one transaction."""
    producer.begin_transaction()
    for value in values:
        producer.produce(SOURCE, value.encode())
    producer.flush()
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


def read(servers: str, count: int) -> list[str]:
    """The first values of the sink."""
    settings = {"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(SINK, 0, 0)])
    values: list[str] = []
    while len(values) < count:
        message = consumer.poll(60)
        if message is None or message.error():
            raise RuntimeError(f"{len(values)} of {count} shipments: {message and message.error()}")
        values.append((message.value() or b"").decode())
    consumer.close()
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description="A streaming pipeline over a cluster of its own.")
    parser.add_argument("--jars", help="the connector and what it needs, with commas between")
    jars = parser.parse_args().jars
    builder: Any = SparkSession.builder
    builder = builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1")
    connector = ("spark.jars", jars) if jars else ("spark.jars.packages", CONNECTOR)
    spark = builder.config(*connector).getOrCreate()
    with MiniCluster(seed=1, listeners=True) as cluster, tempfile.TemporaryDirectory() as folder:
        servers = cluster.bootstrap_servers
        for topic in (SOURCE, SINK):
            cluster.create_topic(topic, partitions=1, replicas=3, min_isr=2)
        settings = {"bootstrap.servers": servers, "transactional.id": "shop"}
        producer = confluent_kafka.Producer(settings)
        producer.init_transactions()
        write(producer, "tea", "cake")
        write(producer, "a mistake", commit=False)
        run_pipeline(spark, servers, folder)
        cluster.kill(cluster.topic(SINK)[0].leader)
        write(producer, "coffee")
        run_pipeline(spark, servers, folder)
        print("shipped:", ", ".join(read(servers, 3)))
        spark.stop()


if __name__ == "__main__":
    main()
