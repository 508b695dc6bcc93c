"""Policies that change under a running memory, by when they do."""
