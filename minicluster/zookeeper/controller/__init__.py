"""The controller that lived on ZooKeeper, releases 2.6 to 3.9.

``machine.py`` takes the events of ``events.py`` one after the other. A file for each subject
decides them (a fail-over, a broker's change, a reassignment …); what they change of partitions,
replicas and topics is in ``partition_states.py``, ``replica_states.py``, ``elections.py`` and
``topic_deletion.py``, and what the controller knows in ``context.py``.
"""
