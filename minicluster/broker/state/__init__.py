"""The state that the client APIs of a broker share."""
