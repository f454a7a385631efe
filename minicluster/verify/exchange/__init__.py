"""Requests and their responses, as the judge takes them, and rules about one exchange."""
