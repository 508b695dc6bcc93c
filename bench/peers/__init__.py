"""What a user might pick instead, on the same records and queries, each in an environment of its own."""
