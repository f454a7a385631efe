"""The assignors of the coordinator (KIP-848): the same input gives Kafka's own assignment."""
