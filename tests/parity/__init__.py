"""Two engines, one answer: generated documents put to the embedded engine and to a real OPA server."""
