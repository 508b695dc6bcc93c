"""The reports of a comparison and of a replay, each as lines that are made while they are printed."""
