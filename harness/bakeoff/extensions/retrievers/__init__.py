"""Retrievers besides functions: a search endpoint over HTTP."""

RETRIEVERS = {"http": "bakeoff.extensions.retrievers.http:Http"}
