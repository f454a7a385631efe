"""A broker on ZooKeeper besides its replicas, below Kafka 4.0."""
