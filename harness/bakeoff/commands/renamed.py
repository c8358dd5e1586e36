"""Old names of commands and options, which still work in this version: each prints a notice with its new name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

COMMANDS = {"load": "loadtest"}

_CONTENDER = {"--only": "--contender {}"}
_SET = {"--option": "--set {}"}
# `{}` is the value of an old option that takes one.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "run": {
        **_CONTENDER,
        "--weights": "--set weights_file={}",
        "--use-best-weights": "--set use_best_weights=true",
        "--no-use-best-weights": "--set use_best_weights=false",
        "--calibrate-thresholds": "--set calibrate_thresholds=true",
    },
    "sweep": _CONTENDER,
    "loadtest": _CONTENDER,
    "footprint": _CONTENDER,
    "doctor": {"--only": "--provider {}"},
    "grade": _SET,
    "queries": _SET,
}


def current_names(arguments: Sequence[str], notice: Callable[[str], None]) -> list[str]:
    """The command line with today's names; `--verbose` may come after the command, too."""
    last = arguments.index("--") if "--" in arguments else len(arguments)
    own, rest = list(arguments[:last]), list(arguments[last:])
    verbose = ["--verbose"] if "--verbose" in own else []
    own = [argument for argument in own if argument != "--verbose"]
    at = next((place for place, argument in enumerate(own) if not argument.startswith("-")), None)
    if at is None:
        return [*verbose, *own, *rest]
    command = COMMANDS.get(own[at], own[at])
    if command != own[at]:
        notice(f"`bakeoff {own[at]}` is now called `bakeoff {command}`; the next version drops the old name")
    return [*verbose, *own[:at], command, *_options(own[at + 1 :], OPTIONS.get(command, {}), notice), *rest]


def _options(arguments: Sequence[str], renamed: Mapping[str, str], notice: Callable[[str], None]) -> list[str]:
    current: list[str] = []
    left = list(arguments)
    while left:
        argument = left.pop(0)
        name, equals, value = argument.partition("=")
        new = renamed.get(name)
        if new is None or ("{}" in new and not equals and not left):
            current.append(argument)
            continue
        option, _, spelling = new.partition(" ")
        if "{}" in new and not equals:
            value = left.pop(0)
        current += [option, spelling.replace("{}", value)]
        shown = option if spelling == "{}" else new.replace("{}", "…")
        notice(f"`{name}` is now called `{shown}`; the next version drops the old name")
    return current
