"""Real software on a cluster: Kafka Streams, Connect, Kafka's tools, franz-go, KafkaJS.

    python -m tests.apps fetch        # jars (Maven), franz-go (Go), KafkaJS (npm), into a cache
    python -m pytest -m apps tests/apps

A test whose program is missing here is skipped, with the reason. Each run is judged at its end.
"""
