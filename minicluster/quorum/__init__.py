"""KRaft: elections, replication of the metadata log, snapshots and changes of the voters.

The idea is in three files, each with its hard cases worked in numbers: ``transitions`` (the roles
of a node, and every change between them), ``elections`` (who may become the leader) and
``replication`` (what is committed). ``machine`` shows how to drive it.
"""
