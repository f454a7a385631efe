"""What the judge takes of requests and their responses, and rules about one exchange."""
