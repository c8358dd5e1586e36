"""Tasks from files. A new format is one module here; each ends in the same `Task`."""
