"""Kafka's own clients against clusters of this process."""
