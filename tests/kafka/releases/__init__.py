"""Metadata logs of every minor release of Apache Kafka, recorded from its own nodes."""
