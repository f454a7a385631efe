"""The effect of a disturbance on the partitions of a cluster: measured, summed up, shown."""
