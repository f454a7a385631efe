"""A random workload of administration and failures against the controller machine alone."""
