"""The metadata controller as a pure machine: decide records, apply them, answer when committed."""
