"""What Apache Kafka's own classes answered, played against the machines."""
