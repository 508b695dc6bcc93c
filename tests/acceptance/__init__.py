"""Tests of what a user would do, through the public ways in."""
