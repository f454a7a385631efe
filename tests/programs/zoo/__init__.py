"""Faults of programs that use Kafka, each with its repaired form: what exploring finds."""
