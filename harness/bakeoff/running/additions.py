"""What a result has beyond its figures: a fault there costs the addition and is said, never what was paid for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from bakeoff.systems.failures import reason_of

T = TypeVar("T")

log = logging.getLogger(__name__)


class Additions:
    """Makes one addition after the other and keeps a warning of each that failed."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def made(self, what: str, make: Callable[[], T], otherwise: T) -> T:
        """What `make` answers, or `otherwise` where it fails."""
        try:
            return make()
        except Exception as error:
            log.warning("%s: not made", what, exc_info=error)
            self.warnings.append(f"{what} could not be made ({reason_of(error)})")
            return otherwise
