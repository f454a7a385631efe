"""The requests that leaders serve, and the requests that wait."""
