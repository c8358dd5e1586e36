"""Text from data for programs that break on some characters: XML, and the charts, which become SVG."""

from __future__ import annotations

import re
from typing import Any

# What XML 1.0 has no way to write: the library that draws pictures ends the whole process over one of these.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_ENDS = re.compile("[\t\n\r\x0b\x0c\x85\u2028\u2029]+")


def xml_text(text: str) -> str:
    """The text with a replacement character for each one that XML can't hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def chart_values(content: Any) -> Any:
    """The same specification with every text in one line and fit for SVG."""
    if isinstance(content, str):
        return xml_text(_LINE_ENDS.sub(" ", content))
    if isinstance(content, dict):
        return {chart_values(key): chart_values(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [chart_values(value) for value in content]
    return content
