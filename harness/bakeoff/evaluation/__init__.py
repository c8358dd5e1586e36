"""Rankings and grades to per-query values: pure functions, equal to trec_eval."""
