"""The way to the coordinator of a transaction, whose partitions it verifies or adds."""
