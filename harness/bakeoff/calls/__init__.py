"""Paid and slow calls: cache, claims, budget, retries, and the chat models behind them."""
