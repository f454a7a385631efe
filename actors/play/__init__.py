"""Scenarios and campaigns, played on a cluster."""
