"""Recordings of Kafka's group coordinator: ``python -m tests.kafka.groups --record`` makes them."""
