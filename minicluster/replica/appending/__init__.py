"""The checks of the batches that producers send, and the changes to them."""
