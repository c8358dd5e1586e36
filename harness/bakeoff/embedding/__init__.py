"""Texts to vectors: chunks, batches, retries, rate limits, budgets and the cache."""
