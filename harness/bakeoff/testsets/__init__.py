"""Making a task: from the documents people have to a sample with graded queries."""
