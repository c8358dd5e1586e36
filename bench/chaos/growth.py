"""Hostile documents, once and four times as long: the CPU time of reading them grows no faster than they do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from bakeoff.core.files import _toml_remedy
from bakeoff.embedding.chunking import sentences
from bakeoff.extensions.production.log_import import personal
from bakeoff.extensions.testsets.ask import Unusable, read_object
from bakeoff.extensions.testsets.document_files import read_html, read_markdown
from bakeoff_providers.errors import BakeoffError
from bakeoff_providers.secrets import without_secrets

from chaos.row import Figure, Plan

TIMES = 4
GENEROUS = 8.0  # linear is 4, quadratic 16; a busy machine is somewhere above the first
FLOOR = 0.01  # seconds below which a ratio says nothing
Read = Callable[[str], object]


def _html(text: str) -> object:
    return read_html(text.encode())


def _answer(text: str) -> object:
    with contextlib.suppress(Unusable):
        return read_object(text, dict)
    return None


CASES: dict[str, tuple[Read, Callable[[int], str], int]] = {
    "heading with blanks": (read_markdown, lambda n: "# a" + " " * n + "b", 10_000),
    "brackets": (read_markdown, lambda n: "[" * n, 5_000),
    "links": (read_markdown, lambda n: "[a](" * n, 1_250),
    "images": (read_markdown, lambda n: "![" * n, 1_250),
    "emphasis": (read_markdown, lambda n: "*a **b " * n, 750),
    "code": (read_markdown, lambda n: "`a`` " * n, 1_250),
    "comments": (read_markdown, lambda n: "<!--" * n, 5_000),
    "table rows": (read_markdown, lambda n: "| a |\n|---|\n" + "| 1 |\n" * n, 250),
    "front matter": (read_markdown, lambda n: "---\n" + "a: [b\n" * n, 2_500),
    "cells that nobody closed": (_html, lambda n: "<table>" + "<td>x" * n, 5_000),
    "rows that nobody closed": (_html, lambda n: "<table>" + "<tr><td>x" * n, 2_500),
    "paragraphs that nobody closed": (_html, lambda n: "<p>x" * n, 5_000),
    "comments that nobody closed": (_html, lambda n: "<!--" * n, 5_000),
    "attributes": (_html, lambda n: "<a " + "x=1 " * n + ">t</a>", 5_000),
    "sentences": (sentences, lambda n: "A b c. " * n, 1_250),
    "thoughts that nobody ended": (_answer, lambda n: "<think>" * n, 5_000),
    "thoughts": (_answer, lambda n: "<think>x</think>" * n, 2_500),
    "e-mail addresses without an @": (personal, lambda n: "a." * n, 5_000),
    "e-mail addresses without a host": (personal, lambda n: "a@" * n, 5_000),
    "digits": (personal, lambda n: "1   " * n, 2_500),
    "a line of TOML": (_toml_remedy, lambda n: "a = b" + " " * n + "'", 5_000),
    "addresses": (without_secrets, lambda n: "http://a?b " * n, 1_250),
}


def growth(folder: Path, plan: Plan, count: int) -> list[Figure]:  # noqa: ARG001 - the cases are fixed
    """The lesser of two, so that a busy machine does not look like a slow parser."""
    worst, name = 0.0, ""
    for case, (read, make, size) in CASES.items():
        small, large = (_seconds(read, make(times * size)) for times in (1, TIMES))
        ratio = large / max(small, FLOOR)
        if ratio > worst:
            worst, name = ratio, f"{case}: {small:.3f} s, then {large:.3f} s"
    figure = Figure(
        f"growth of time over {TIMES} times the text, worst of {len(CASES)} parsers", round(worst, 1), GENEROUS, name
    )
    return [figure]


def _seconds(read: Read, text: str) -> float:
    taken = []
    for _ in range(2):
        begin = time.process_time()
        with contextlib.suppress(BakeoffError):  # refused, which is an answer too
            read(text)
        taken.append(time.process_time() - begin)
    return min(taken)
