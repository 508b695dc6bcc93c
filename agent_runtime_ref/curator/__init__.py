"""The curator: the only writer of what a conversation says of a user."""
