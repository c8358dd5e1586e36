"""One module per command, or per family of commands: its options, and what it does in a few lines.

Everything heavy is imported inside the functions: `bakeoff --help` reads all of these modules.
"""
