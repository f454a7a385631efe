"""A run as folders that Apache Kafka's own nodes start from."""
