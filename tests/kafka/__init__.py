"""Apache Kafka's own processes beside a cluster's nodes.

    python -m tests.kafka fetch        # the jars, with Maven, into a cache directory
    python -m pytest -m kafka tests/kafka

Without Java or without the jars these tests are skipped. ``MINICLUSTER_KAFKA_JARS`` names another
folder with the jars.
"""
