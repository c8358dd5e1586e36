"""Names on docs/five-documents/: sections, commands and functions that are there, and options that work."""

from __future__ import annotations

import re
from pathlib import Path

import bakeoff
import pytest
from bakeoff.core.paths import lineup_file

from tests.cli.test_testsets import say
from tests.five_documents import (
    test_golden_profiles,
    test_movies,
    test_next_location,
    test_reference_model,
    test_wikipedia_framework,
)
from tests.five_documents.data import MAKERS
from tests.five_documents.page import PAGE, SECTIONS, commands, functions

TESTS = (test_wikipedia_framework, test_reference_model, test_movies, test_next_location, test_golden_profiles)


def test_every_section_has_its_data_and_commands() -> None:
    assert list(SECTIONS) == list(MAKERS) == [module.TITLE for module in TESTS]
    assert all(commands(title) for title in SECTIONS)


@pytest.mark.parametrize("module", TESTS, ids=lambda module: module.TITLE)
def test_every_function_has_its_test(module: object) -> None:
    title, tested = getattr(module, "TITLE"), getattr(module, "TESTED")  # noqa: B009
    assert sorted(name for names in tested.values() for name in names) == sorted(functions(title))


def test_python_names_and_built_in_line_ups_exist() -> None:
    assert set(re.findall(r"`bakeoff\.(\w+)`", PAGE)) <= set(bakeoff.__all__)
    for name in re.findall(r"`bakeoff run (\w+)`", PAGE):
        assert lineup_file(Path(name)).is_file()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`bakeoff ((?:queries |vectors )?[a-z]+)[` ]", PAGE))))
def test_commands_that_are_named_exist(command: str, tmp_path: Path) -> None:
    assert "Usage" in say(tmp_path, *command.split(), "--help")
