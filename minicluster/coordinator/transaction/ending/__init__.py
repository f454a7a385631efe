"""The end of a transaction: by its producer, by a fence, by its time-out."""
