"""The harness, in the order in which data flows: line-up, task, embed, store, run, scores, verdict, report."""
