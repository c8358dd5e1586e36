"""Vectors without a run: import, export, and embedding shard by shard."""

from bakeoff.core.extensions import Command

_COMMANDS = "bakeoff.extensions.vectors.commands"
COMMANDS = (
    Command("vectors", f"{_COMMANDS}:vectors", "Set up", "Import or export vectors."),
    Command("embed", f"{_COMMANDS}:embed", "Set up", "Embed one shard of the documents."),
)
