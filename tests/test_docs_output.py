"""Output that the documentation shows, made by running it: `python -m tests.test_docs_output` writes all of it again.

A block is marked by a comment on the line before its fence: <!-- output: bakeoff show results/reference -->. It runs in
the checkout, or in a folder that `in FOLDER:` before the command names: one under tests/docs_corpora/, or one that
tests/docs_data.py makes, copied for each page. A line of … stands for lines that are left out. Times, paths of
temporary folders and addresses are masked before a comparison. <!-- slow output: … --> needs minutes or BEIR's SciFact
(in the folder that BAKEOFF_DATA names): `python -m tests.test_docs_output --slow` writes it, and no test runs it.
<!-- measured: why --> is before figures that no command here can make again.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs_data import make
from tests.terminal import bakeoff

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LEFT_OUT = "…"
_BLOCK = re.compile(
    r"^<!-- (?P<slow>slow )?output: (?:in (?P<folder>[\w-]+): )?(?P<command>.+?) -->\n"
    r"```text\n(?P<asked>\$ (?:[^\n]*\\\n)*[^\n]*\n)(?P<shown>.*?)^```",
    re.M | re.S,
)
_MEASURED = re.compile(r"^<!-- measured: [^\n]+ -->\n```text\n.*?^```", re.M | re.S)
_MASKS = (
    (re.compile(r"\d+(\.\d+)?(e-?\d+)? (ms|s)\b"), "# ms"),
    (re.compile(r"\d{8}-\d{6}"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? \?"), "# ?"),
    (re.compile(r"^\? .*: the machine was busy .*\n|^\? .* times scatter .*\n( *--rounds\n)?", re.M), ""),
)


def masked(text: str) -> str:
    """Without what differs from run to run."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return re.sub(r" +", " ", text)


def without_outputs(text: str) -> str:
    """A page without what commands printed."""
    return _MEASURED.sub("", _BLOCK.sub("", text))


def blocks(text: str, *, slow: bool = False) -> list[re.Match[str]]:
    """The marked blocks of a page: the quick ones, or the slow ones."""
    return [block for block in _BLOCK.finditer(text) if bool(block["slow"]) == slow]


def parts(shown: str) -> list[list[str]]:
    """The lines between those that stand for what is left out."""
    found: list[list[str]] = [[]]
    for line in shown.splitlines():
        if line.strip() == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def excerpt(shown: str, printed: str) -> str:
    """What is printed, as far as the block shows it: each part from its first line on, as many lines as it has."""
    lines, place, kept = printed.splitlines(), 0, []
    given = parts(shown)
    if len(given) == 1:
        return printed
    for part in given:
        if part:
            first = _anchor(part[0])
            place = next(at for at in range(place, len(lines)) if _anchor(lines[at]) == first)
            kept.append(lines[place : place + len(part)])
            place += len(part)
        else:
            kept.append([])
    return "".join(f"{line}\n" for at, part in enumerate(kept) for line in [*([LEFT_OUT] if at else []), *part])


def _anchor(line: str) -> str:
    """A line by its words: its figures may have changed."""
    return re.sub(r"[\d.,+-]+", "#", " ".join(line.split()))


@contextlib.contextmanager
def session(work: Path) -> Iterator[None]:
    """Commands of one page see each other's files, in copies of the corpora that they name."""
    shutil.copytree(ROOT / "tests" / "docs_corpora", work, dirs_exist_ok=True)
    before = {name: os.environ.get(name) for name in ("COLUMNS", "BAKEOFF_HOME")}
    folder = Path.cwd()
    os.environ["COLUMNS"] = "100"
    try:
        yield
    finally:
        os.chdir(folder)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def output(block: re.Match[str], work: Path) -> str:
    """What the block's command prints, errors last."""
    folder, command = block["folder"], block["command"]
    if folder and not (work / folder).exists():
        make(folder, work / folder)
    os.chdir(work / folder if folder else ROOT)
    name, *words = shlex.split(command)
    arguments = [path for word in words for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    printed = _of_bakeoff(arguments) if name == "bakeoff" else _as_process([name, *arguments])
    text = printed.replace(f"{ROOT}/", "").replace(f"{work}/", "")
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def _of_bakeoff(arguments: list[str]) -> str:
    done = bakeoff(*arguments, cwd=Path.cwd())
    return done.stdout + done.stderr


def _as_process(command: list[str]) -> str:
    """A program that is not ours to call: `make`, or a bench."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    name = sys.executable if command[0] == "python" else command[0]
    return subprocess.run([name, *command[1:]], capture_output=True, text=True, env=environment, check=True).stdout


def rewrite(page: Path, *, slow: bool = False) -> None:
    """Writes a page's blocks as their commands print them now."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work, session(Path(work).resolve()):
        for block in blocks(text, slow=slow):
            shown = excerpt(block["shown"], output(block, Path(work).resolve()))
            text = text.replace(block.group(), block.group().removesuffix(f"{block['shown']}```") + f"{shown}```")
            print(f"{page.relative_to(ROOT)}: {block['command']}", file=sys.stderr)
    page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page.read_text(encoding="utf-8"))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_pages_show_what_the_commands_print(page: Path, tmp_path: Path) -> None:
    with session(tmp_path):
        for block in blocks(page.read_text(encoding="utf-8")):
            shown = excerpt(block["shown"], output(block, tmp_path))
            assert masked(shown) == masked(block["shown"]), block["command"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_output_is_written_by_hand(page: Path) -> None:
    """Whatever shows a command with what it printed is marked, and asks what its mark says."""
    text = page.read_text(encoding="utf-8")
    marked = list(_BLOCK.finditer(text))
    for block in marked:
        asked = re.sub(r"\\\n\s*", "", block["asked"]).removeprefix("$ ").rstrip("\n")
        assert asked.split() == block["command"].split()
    rest = without_outputs(text)
    by_hand = re.findall(r"^(?: {4})?\$ (?:bakeoff|python|make)[^\n]*\n(?: {4})?(?!\$|```)\S.*", rest, re.M)
    assert not by_hand


def test_an_excerpt_follows_its_first_lines() -> None:
    printed = "head 1\na 2\nb 3\nc 4\ntail\n"
    assert excerpt("…\na 9\nb 9\n…\n", printed) == "…\na 2\nb 3\n…\n"
    assert excerpt("old\n", printed) == printed


if __name__ == "__main__":
    only = [name for name in sys.argv[1:] if not name.startswith("-")]
    for page in PAGES:
        if not only or str(page.relative_to(ROOT)) in only:
            rewrite(page, slow="--slow" in sys.argv)
