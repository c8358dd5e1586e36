"""The command line: parsing and printing, no logic of its own."""
