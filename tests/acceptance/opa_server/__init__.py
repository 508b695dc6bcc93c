"""A real policy server, by what is asked of it."""
