"""Compares the codec with bytes that Apache Kafka's own classes wrote."""
