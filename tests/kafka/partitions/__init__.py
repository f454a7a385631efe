"""A partition of Kafka's on a real log beside ours, with events that seeds draw.

``python -m tests.kafka.partitions --seeds 1-20`` compares after each event: leader and follower,
the controller's responses to changes of the ISR, truncation, high watermark. ``--record`` writes
what the player of partition transcripts reads (``tests/transcripts``).
"""
