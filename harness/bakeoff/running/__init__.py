"""A line-up from beginning to end: prepare, take turns, score."""
