"""`make simulate`: one table of claims, worlds, promised and measured rates. Exits 1 if a promise is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from simulate import corrected, gates, hardest, incumbents, intervals, looks, planning, production, sets
from simulate.table import Line, Simulation, print_table, worst_of

SECTIONS: dict[str, Simulation] = {
    "sets": sets.simulate,
    "incumbent": incumbents.simulate,
    "intervals": intervals.simulate,
    "planning": planning.simulate,
    "corrected": corrected.simulate,
    "gate": gates.simulate,
    "looks": looks.simulate,
    "production": production.simulate,
    "hardest": hardest.simulate,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulate", description="Claims against worlds of known truth")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS), help="sections to run")
    parser.add_argument("--effort", type=float, default=1.0, help="multiply the number of data sets")
    parser.add_argument("--worst", action="store_true", help="one line per claim: its hardest world")
    given = parser.parse_args()

    def lines() -> Iterator[Line]:
        for name in given.only:
            yield from SECTIONS[name](given.effort)

    return int(print_table(worst_of(lines()) if given.worst else lines()) > 0)


if __name__ == "__main__":
    sys.exit(main())
