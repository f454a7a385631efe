"""The requests that a broker responds to from its image, one module each."""
