"""Changes of the voter set and of kraft.version (KIP-853): one file per request."""
