"""Logs and runs written by hand, a few words for each record, request or event."""
