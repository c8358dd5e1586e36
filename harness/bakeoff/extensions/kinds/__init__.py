"""Task kinds besides graded: a reference model's neighbours, ordered lists, one right answer, profiles."""

from bakeoff.core.extensions import Command

_HERE = "bakeoff.extensions.kinds"
KINDS = {
    "reference": f"{_HERE}.reference:Reference",
    "ordered": f"{_HERE}.ordered:Ordered",
    "single": f"{_HERE}.single:Single",
    "profiles": f"{_HERE}.profiles:Profiles",
}
WORDS = {"kinds": f"{_HERE}.words:WORDS"}
COMMANDS = (Command("snapshot", f"{_HERE}.commands:snapshot", "Test sets", "Write the snapshot of a profiles task."),)
