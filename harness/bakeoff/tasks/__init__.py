"""Where documents, queries and judgments come from: file formats, and the kinds of task."""
