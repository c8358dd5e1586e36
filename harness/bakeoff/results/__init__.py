"""What a run found out, as files: the schema, the verdict, comparisons and gates."""
