"""The outcome of a check: facts, figures for programs, gauges for a monitor."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bakeoff.core.facts import Fact

FORMAT = 2  # of the JSON that a check prints
FINE, WORSE, UNREACHABLE = 0, 1, 3  # exit codes; 2 is bad input, as everywhere
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Gauge(msgspec.Struct, frozen=True):
    """A figure for a monitor. `bakeoff_` precedes its name."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if not all(map(_NAME.fullmatch, (self.name, *self.labels))):
            raise ValueError(f"{self.name} {list(self.labels)}: names are lower case, digits and underscores")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one command. `worse` makes it exit with 1, for cron and CI."""

    command: str
    worse: bool
    facts: Sequence[Fact]
    figures: Mapping[str, Any] = {}
    gauges: Sequence[Gauge] = ()

    @property
    def exit_code(self) -> int:
        """0 fine, 1 changed or worse."""
        return WORSE if self.worse else FINE

    def to_json(self, text: Sequence[str]) -> bytes:
        """Everything except gauges, which repeat figures. `text` has the facts as sentences."""
        content = {
            "format": FORMAT, "command": self.command, "worse": self.worse, **without_nan(self.figures),
            "facts": without_nan(msgspec.to_builtins(self.facts)), "text": text,
        }  # fmt: skip
        return msgspec.json.format(msgspec.json.encode(content), indent=2)

    def to_openmetrics(self) -> str:
        """The text format of OpenMetrics 1.0, which Prometheus' text file collector reads too."""
        status = Gauge("worse", "1 if the check found a change or a loss", float(self.worse), {"check": self.command})
        return openmetrics([status, *self.gauges])


def unreachable(command: str) -> str:
    """Metrics of a check whose service did not answer, so that the monitor does not keep old figures."""
    return openmetrics([Gauge("reached", "0 if the service could not be reached", 0.0, {"check": command})])


def openmetrics(gauges: Sequence[Gauge]) -> str:
    """Samples grouped by name, below their type and help, as the format requires."""
    families: dict[str, list[Gauge]] = {}
    for gauge in gauges:
        families.setdefault(gauge.name, []).append(gauge)
    lines = []
    for name, samples in families.items():
        lines += [f"# TYPE bakeoff_{name} gauge", f"# HELP bakeoff_{name} {_escape(samples[0].help)}"]
        lines += [f"bakeoff_{name}{_labels(sample.labels)} {_number(sample.value)}" for sample in samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def without_nan(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by null."""
    if isinstance(value, Mapping):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _labels(labels: Mapping[str, str]) -> str:
    quoted = ",".join(f'{key}="{_escape(value)}"' for key, value in labels.items())
    return f"{{{quoted}}}" if quoted else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(float(value)) if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"
