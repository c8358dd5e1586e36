"""Every claim of the statistics against worlds whose truth is known: how often it holds, and what was promised."""
