"""After the choice: what to watch and to try once a model and an index serve people. Reads production, never writes."""
