"""The rules: tables of markers as data, and the few steps that read an utterance by them."""
