"""Output that the documentation shows, made by running it: `python -m tests.test_docs_output` writes all of it again.

A block is marked by a comment on the line before its fence: <!-- output: bakeoff show results/reference -->. It runs in
the checkout, or in a folder under tests/docs_corpora/ that `in FOLDER:` before the command names, copied for each page.
Times, paths of temporary folders and addresses are masked before a comparison.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(
    r"^<!-- output: (?:in (?P<folder>[\w-]+): )?(?P<command>.+?) -->\n```text\n(?P<shown>.*?)^```", re.M | re.S
)
_MASKS = (
    (re.compile(r"\d+(\.\d+)?(e-?\d+)? (ms|s)\b"), "# ms"),
    (re.compile(r"\d{8}-\d{6}"), "<time>"),
)


def masked(text: str) -> str:
    """Without what differs from run to run."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def blocks(text: str) -> Iterator[re.Match[str]]:
    """The marked blocks of a page."""
    return _BLOCK.finditer(text)


@contextlib.contextmanager
def session(work: Path) -> Iterator[None]:
    """Commands of one page see each other's files, in copies of the corpora that they name."""
    shutil.copytree(ROOT / "tests" / "docs_corpora", work, dirs_exist_ok=True)
    before = os.environ.get("COLUMNS"), Path.cwd(), sys.argv
    os.environ["COLUMNS"] = "100"
    try:
        yield
    finally:
        os.chdir(before[1])
        sys.argv = before[2]
        if before[0] is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before[0]


def output(block: re.Match[str], work: Path) -> str:
    """What the block's command prints; a line that starts with $ repeats it where the block shows one."""
    from bakeoff.cli import main

    folder, command = block["folder"], block["command"]
    os.chdir(work / folder if folder else ROOT)
    name, *arguments = shlex.split(command)
    assert name == "bakeoff", f"{command} is no command of ours"
    sys.argv = ["bakeoff", *arguments]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main()
    text = printed.getvalue().replace(f"{ROOT}/", "")
    shown = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"$ {command}\n{shown}\n"


def rewrite(page: Path) -> None:
    """Writes a page's blocks as their commands print them now."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work, session(Path(work)):
        for block in list(blocks(text)):
            text = text.replace(block.group(), block.group().replace(block["shown"], output(block, Path(work))))
    page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(blocks(page.read_text(encoding="utf-8")))], ids=lambda p: p.name
)
def test_pages_show_what_the_commands_print(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with session(tmp_path):
        for block in blocks(text):
            assert masked(output(block, tmp_path)) == masked(block["shown"]), block["command"]


if __name__ == "__main__":
    for page in PAGES:
        if any(blocks(page.read_text(encoding="utf-8"))):
            rewrite(page)
