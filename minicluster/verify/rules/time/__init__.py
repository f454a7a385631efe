"""Promises about time: what waits, for how long, and the rules over it."""
