"""A broker's AlterPartition manager of Kafka's beside ours, with events that seeds draw.

``python -m tests.kafka.alter_partition --kafka 3.9.2 --seeds 1-20`` compares after each event.
``--record`` writes what the player of partition transcripts reads (``tests/transcripts``).
"""
