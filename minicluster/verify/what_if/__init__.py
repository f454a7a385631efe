"""What a disturbance does to the partitions of a cluster: measured, summed up, shown."""
