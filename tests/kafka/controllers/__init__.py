"""The managers of Kafka's active controller beside ours, with operations that seeds draw.

``python -m tests.kafka.controllers --kafka 3.9.2 --metadata-version 4.0-IV0 --elr --seeds 1-20``
draws operations from the state so far, has Kafka's own classes decide them in a Java process, and
compares; after a difference the next operations follow what Kafka did. ``--record`` writes what the
player of controller transcripts reads (``tests/transcripts``).
"""
