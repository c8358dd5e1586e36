"""Per-query values to tests, intervals and power: pure functions, always paired by query."""
