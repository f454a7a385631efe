"""One file per request of peers and admins, in Kafka's order of refusals."""
