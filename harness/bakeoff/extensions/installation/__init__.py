"""What is installed and stored on this machine: options of every plug-in, checks, weights, the cache."""

from bakeoff.core.extensions import Command

_HERE = "bakeoff.extensions.installation"
COMMANDS = (
    Command("options", f"{_HERE}.options:options", "Set up", "List every option with its default and meaning."),
    Command("doctor", f"{_HERE}.commands:doctor", "Set up", "Check every provider with one test embedding."),
    Command("models", f"{_HERE}.commands:models", "Set up", "Get the weights of local models."),
    Command("cache", f"{_HERE}.commands:cache", "Set up", "Inspect, prune or clear the vectors on disk."),
)
