"""The metadata controller as a pure machine: decide, apply, respond once it is committed."""
