"""Stores under examination: recall against time, load tests, footprints."""
