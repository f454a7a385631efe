"""Every config of Kafka 4.3.0: its type, default, validator and documentation, and their rules."""
