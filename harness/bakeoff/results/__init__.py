"""Results as files: schema, verdict, comparisons and gates."""
