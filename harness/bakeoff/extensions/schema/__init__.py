"""JSON Schemas of the files that users write, for completion and checks in editors."""

from bakeoff.core.extensions import Command

_HERE = "bakeoff.extensions.schema"
COMMANDS = (Command("schema", f"{_HERE}.commands:schema", "Set up", "Print the JSON Schema of a file, for editors."),)
AFTER_INIT = {"schema": f"{_HERE}.commands:add_schema"}
