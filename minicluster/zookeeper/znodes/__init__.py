"""Kafka's znodes: their paths, and their texts byte for byte as Kafka writes them."""
