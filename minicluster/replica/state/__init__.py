"""The state that the parts of one broker's replica manager share."""
