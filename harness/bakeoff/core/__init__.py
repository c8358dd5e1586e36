"""Shared by all packages: tasks, rankings, filters, files, paths, the clock, and the discovery of extensions."""
