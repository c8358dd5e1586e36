"""`make simulate`: claims, worlds, promised and measured rates. Exits 1 if a promise is missed.

With --table it prints the table of docs/internals/claims.md: each claim in its hardest world.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from simulate import corpora, corrected, gates, hardest, incumbents, intervals, looks, planning, production, sets
from simulate.table import Line, Simulation, print_summary, print_table

SECTIONS: dict[str, Simulation] = {
    "sets": sets.simulate,
    "incumbent": incumbents.simulate,
    "intervals": intervals.simulate,
    "planning": planning.simulate,
    "corrected": corrected.simulate,
    "gate": gates.simulate,
    "looks": looks.simulate,
    "production": production.simulate,
    "corpora": corpora.simulate,
    "hardest": hardest.simulate,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="simulate", description="Claims against worlds of known truth")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS), help="sections to run")
    parser.add_argument("--effort", type=float, default=1.0, help="multiply the number of data sets")
    parser.add_argument("--table", action="store_true", help="print the docs' table: each claim in its hardest world")
    given = parser.parse_args(arguments)

    def lines() -> Iterator[Line]:
        for name in given.only:
            yield from SECTIONS[name](given.effort)

    if not given.table:
        return int(print_table(lines()) > 0)
    missed = print_summary(lines())
    print(f"\nEffort {given.effort:g}, {time.process_time() / 60:.0f} minutes of processor time.")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
