"""Kafka on ZooKeeper, 2.6 to 3.9: the server, znodes, the controller, the broker, the log.

What the metadata log is to KRaft, a tree of znodes is here, and it holds states, not changes:

    KRaft                                 on ZooKeeper
    a record, committed by a majority     a write of a znode, ordered by its zxid
    epoch of the quorum                   /controller_epoch; each write of the controller checks it
    heartbeats, fencing                   a session; its end takes /brokers/ids/N away
    broker epoch: offset of registration  czxid of /brokers/ids/N
    partition epoch                       version of .../partitions/N/state
    brokers read the log                  the controller sends LeaderAndIsr and UpdateMetadata

The last line makes the difference. A broker knows only what the controller has sent it, a request
can be lost or come late, and no broker can tell what it has missed. So each request carries the
controller epoch, the broker epoch and the leader epoch of each partition, and a broker rejects what
is older than what it has.
"""
