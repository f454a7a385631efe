"""A run as folders of Apache Kafka's own nodes."""
