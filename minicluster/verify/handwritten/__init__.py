"""Logs, runs and ZooKeeper's logs written by hand, a few words for each record, request or event.

The examples of the rules are built of them; those of a user's own rules can be as well.
"""
