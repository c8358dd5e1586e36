"""Texts to vectors: chunks, batches and the vector cache. Calls are made by `calls/`."""
