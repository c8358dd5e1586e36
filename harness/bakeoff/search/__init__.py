"""Vectors or words to ranked ids: stores, rankers, exact search, fusion, and what an index loses."""
