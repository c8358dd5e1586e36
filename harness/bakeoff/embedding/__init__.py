"""Texts to vectors: pieces, batches, retries, rate limits, budgets and the cache."""
