"""Kafka's group coordinator and ours, side by side: the same requests, times and topics.

    python -m tests.kafka.groups --seeds 1-20 --operations 500

Kafka's is GroupCoordinatorService with CoordinatorRuntime over one partition in memory
(``java/GroupCoordinatorProgram.java``), on one thread and a clock that this program holds. Both
draw the same ids. After each operation the responses are compared, and the records that went into
``__consumer_offsets``. A seed ends at its first difference.
"""
