"""P_t behind the gates, by what happens to it."""
