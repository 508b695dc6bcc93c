"""`trace verify` and `trace anchor`, by what is tried on the log."""
