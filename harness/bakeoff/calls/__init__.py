"""Paid and slow calls: cache, claims, budget and retries."""
