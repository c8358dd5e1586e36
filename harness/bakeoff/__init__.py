"""Compares embedding providers and vector stores on your corpus, and says how sure it is."""
