"""Rules over the replicas' own events and logs."""
