"""Apache Kafka's own cluster tests (``@ClusterTest``), from its published test jars.

    python -m tests.kafka fetch
    python -m tests.kafka.cluster_tests GetOffsetShellTest …   # some classes, what came of them
    python -m tests.kafka.cluster_tests --class-path PATH …    # of classes that no jar has
    python -m pytest -m kafka tests/kafka/cluster_tests        # those of classes.yaml

``java/RaftClusterInvocationContext.java`` stands before Kafka's class of that name on the class
path, so each test gets a cluster of another process (``cluster.py``) in place of Kafka's brokers.
"""
