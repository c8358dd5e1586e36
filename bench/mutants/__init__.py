"""One-point mutants of the modules that figures and money depend on, and whether their own tests notice."""
