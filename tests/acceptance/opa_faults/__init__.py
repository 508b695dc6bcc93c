"""A policy server that does what it must not, by where it does."""
