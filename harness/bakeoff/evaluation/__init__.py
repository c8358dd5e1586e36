"""From rankings and grades to per-query values: pure functions that agree with trec_eval."""
