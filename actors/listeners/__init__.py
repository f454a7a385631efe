"""Sockets on which Kafka's clients reach the brokers of a cluster."""
