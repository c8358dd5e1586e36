"""Commands in shells, locales and containers unlike ours: nothing is lost, and every end is said in words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bakeoff.core.printable import whole_number
from hypothesis import given
from hypothesis import strategies as st

from tests import terminal
from tests.errors import refused, refuses, says
from tests.native_task import native_files, write_lineup

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def bakeoff(
    folder: Path, *arguments: str | bytes, shell: str = "", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The real command; `shell` is what a shell would write behind it, such as `>&-`."""
    variables = {**os.environ, "BAKEOFF_HOME": str(folder / "home"), **environment}
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "bakeoff", *arguments]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, check=False)


def bakeoff_within(folder: Path, *arguments: str, **environment: str) -> terminal.Ended:
    """Where no stream or locale is at stake."""
    return terminal.bakeoff(*arguments, cwd=folder, **{"BAKEOFF_HOME": str(folder / "home"), **environment})


@pytest.mark.parametrize("locale", [C_LOCALE, {"PYTHONIOENCODING": "ascii"}])
def test_a_table_is_printed_whatever_the_encoding_is(tmp_path: Path, locale: dict[str, str]) -> None:
    shown = bakeoff(tmp_path, "show", str(REFERENCE), **locale)
    assert (shown.returncode, shown.stderr) == (0, b"")
    text = shown.stdout.decode("ascii" if "PYTHONIOENCODING" in locale else "utf-8")
    assert "granite" in text
    assert ("\N{BLACK STAR}" in text) == ("LC_ALL" in locale)  # a locale says nothing of pipes; PYTHONIOENCODING does


def test_a_page_is_made_in_a_locale_without_letters_of_its_own(tmp_path: Path) -> None:
    made = bakeoff(tmp_path, "report", str(REFERENCE), "--out", "page.html", "--no-pictures", **C_LOCALE)
    assert (made.returncode, made.stdout) == (0, b"Written to page.html\n")
    assert "\N{BLACK STAR}" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_closed_stream_costs_no_result(tmp_path: Path) -> None:
    lineup = write_lineup(tmp_path, native_files(), contenders='[[contender]]\nranker = "bm25"\n')
    for stream in (">&-", "2>&-"):
        ran = bakeoff(tmp_path, "run", str(lineup), "--out", "results", shell=stream)
        assert ran.returncode == 0, ran.stderr
    assert len(list((tmp_path / "results").glob("*/evaluation_report.html"))) == 2


def test_a_user_without_a_home_is_told_what_to_set(tmp_path: Path) -> None:
    told = bakeoff_within(tmp_path, "cache", "info", BAKEOFF_HOME="~nobody-of-this-name/x")
    assert told.returncode == 2
    says(told.stderr, "BAKEOFF_HOME")


def test_a_user_without_a_name_is_told_to_give_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bakeoff.extensions.testsets.commands.pairs_to_grade import annotator_name
    from bakeoff_providers.errors import InputError

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    with refuses(InputError, place="--who"):
        annotator_name(None)
    assert annotator_name("ada") == "ada"


def test_an_argument_that_is_no_utf8_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    told = bakeoff(tmp_path, "canary", "record", "fake", "--model", b"m\xff")
    assert told.returncode == 2
    assert b"is not UTF-8" in told.stderr


def test_files_whose_names_are_no_utf8_are_imported_each_for_itself(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in (b"caf\xe9.md", b"caf\xe8.md"):
        (tmp_path / "docs" / os.fsdecode(name)).write_text("copper mines")
    done = bakeoff_within(tmp_path, "corpus", "import", "docs", "--out", "articles.json")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "articles.json").read_text(encoding="utf-8")
    assert r"caf\\xe9" in text
    assert r"caf\\xe8" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "huge.toml"], "huge.toml"),
        (["embed", "huge.toml", "--shard", "1/" + "1" * 5_000, "--out", "shards"], "--shard"),
        (["corpus-size", "--sizes", "²"], "²"),
        (["sweep", "--synthetic", "100", "--set", "ef=" + "1" * 5_000], "ef"),
        (["run", "own.toml"], "articles.json"),
    ],
)
def test_numbers_and_files_that_are_none(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "huge.toml").write_text(f"seed = {'1' * 5_000}\n")
    write_lineup(tmp_path, native_files(), contenders='[[contender]]\nranker = "bm25"\n')
    (tmp_path / "articles.json").unlink()
    os.mkfifo(tmp_path / "articles.json")
    told = bakeoff_within(tmp_path, *arguments)
    refused(told, said)


def test_a_byte_order_mark_is_no_part_of_a_lineup(tmp_path: Path) -> None:
    lineup = write_lineup(tmp_path, native_files(), contenders='[[contender]]\nranker = "bm25"\n')
    lineup.write_bytes(b"\xef\xbb\xbf" + lineup.read_bytes())
    assert bakeoff_within(tmp_path, "validate", str(lineup), "--no-health").returncode == 0


@given(st.text() | st.integers().map(str))
def test_a_whole_number_is_in_plain_digits(text: str) -> None:
    plain = bool(text) and set(text) <= set("0123456789") and len(text) <= 18
    assert whole_number(text) == (int(text) if plain else None)


def test_a_query_that_is_graded_in_two_places_is_an_error(tmp_path: Path) -> None:
    files = native_files() | {"truth": '{"grades": {"q1": {"1": 3}, "q2": {"2": 2}, "q1": {"2": 0}, "q3": {}}}'}
    lineup = write_lineup(tmp_path, files, contenders='[[contender]]\nranker = "bm25"\n')
    told = bakeoff_within(tmp_path, "run", str(lineup))
    refused(told, "'q1'")
