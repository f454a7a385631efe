"""What a broker checks and changes in the batches that producers send."""
