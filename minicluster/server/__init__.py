"""The rest of a node that has a controller: its listener, its registration, envelopes."""
