"""The replica manager: replicas, their leaders and followers, and the requests that reach them."""
