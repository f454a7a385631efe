"""Recorded runs of Apache Kafka, done again step by step on a cluster."""
