"""Several results: over time on one page, as a site, or several tasks in one table."""

from bakeoff.core.extensions import Command

_COMMANDS = "bakeoff.extensions.several_results.commands"
COMMANDS = (
    Command("serve", f"{_COMMANDS}:serve", "Start", "Show all results as a site on this machine."),
    Command("tasks", f"{_COMMANDS}:tasks", "Decide", "Put the results of several tasks side by side."),
    Command("history", f"{_COMMANDS}:history", "Decide", "Chart every contender over time."),
)
SEVERAL_RESULTS = {"history": f"{_COMMANDS}:write_page"}
SEVERAL_TASKS = {"tasks": f"{_COMMANDS}:after_run"}
