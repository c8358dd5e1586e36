"""The command line: parsing and printing, without logic."""
