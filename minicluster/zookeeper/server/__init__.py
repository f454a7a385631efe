"""ZooKeeper itself, as a machine and as messages.

``tree.py`` has the znodes and their transactions, ``sessions.py`` who is connected, ``watches.py``
who is to hear of a change.
"""
