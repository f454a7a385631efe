"""Tests of messages, records and the codec."""
