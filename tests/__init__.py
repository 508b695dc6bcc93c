"""The tests: unit, property, conformance, acceptance, cases, docs and packaging."""
