"""A broker on ZooKeeper besides its replicas, below Kafka 4.0.

It serves administrators by itself: where it is the controller, it decides their requests by its
view of the znodes (``admin_state.py``; an operation a file), and writes the outcome to ZooKeeper.
"""
