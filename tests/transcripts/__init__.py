"""Responses of Apache Kafka's own classes, compared with those of the machines."""
