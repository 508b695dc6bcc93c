"""`policy diff`, by what is compared."""
