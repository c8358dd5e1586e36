"""Pages from templates: everything from data is escaped, and an unknown name is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bakeoff.report import theme

_HERE = Path(__file__).parent


@cache
def environment(package: Path = _HERE) -> Environment:
    """The templates of a package."""
    templates = Environment(
        loader=FileSystemLoader(package / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["percent"] = lambda share: f"{share:.1%}"
    return templates


def style(*files: Path) -> Markup:
    """The palette, what all pages share, and a page's own rules."""
    return Markup(
        theme.css() + "".join(file.read_text(encoding="utf-8") for file in (_HERE / "static" / "base.css", *files))
    )


def embedded(content: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element or begin a comment."""
    text = msgspec.json.encode(content).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
