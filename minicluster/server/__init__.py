"""What a node that has a controller serves besides it: its listener, registration, envelopes."""
