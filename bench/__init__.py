"""Measurements: what governing memory costs, against what a user would write without it."""
