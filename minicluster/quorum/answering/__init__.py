"""Answers to what peers and admins ask: one file per request, in Kafka's order of refusals."""
