"""Calls that cost money or time: cache, claims, budget, retries, and the chat models behind them."""
