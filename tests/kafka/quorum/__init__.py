"""A node of Kafka's quorum beside ours, among peers that are ours, with chance that seeds draw.

``python -m tests.kafka.quorum --seeds 1-20`` compares after each message, timeout and append: the
role, the log, what is sent, what the state machine sees. ``--record`` writes what the player of
quorum transcripts reads (``tests/transcripts``).
"""
