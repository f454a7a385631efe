"""KRaft: elections, replication of the metadata log, snapshots and changes of the voters."""
