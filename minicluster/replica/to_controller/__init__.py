"""The requests that a broker's replicas send to the controller."""
