"""What a broker on ZooKeeper does besides its replicas, below Kafka 4.0."""
