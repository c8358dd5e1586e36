"""Every built-in line-up's first screen: at most 30 lines that fit, whatever its kind of task has to show."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from bakeoff.core.paths import lineup_file, lineup_names
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.first_screen import Links, screen_lines
from bakeoff.report.verdict_words import Findings, decision
from bakeoff.results.schema import Summary
from bakeoff.results.summary import summarise
from bakeoff.running.runner import run
from rich.cells import cell_len

from tests.providers.real_weights import require

LINKS = Links("bakeoff report latest --open", "bakeoff show latest --full", "results/20261118-005712-a-long-name/")
QUICK_STORES = ("faiss", "sqlite_vec", "usearch", "hnswlib")  # others start slowly, and add lines like these
# Other rows embed for a minute.
QUICK_ROWS = {"help-centre": ("bm25", "tfidf", "wordllama"), "help-centre-chunks": ("bm25",)}


@cache
def summary(name: str) -> Summary:
    for model in ("minilm", "granite", "use"):
        require(model)
    lineup = replace(Lineup.read(lineup_file(Path(name))), rounds=1)
    return summarise(run(lineup.narrow(QUICK_ROWS.get(name, ()), QUICK_STORES if name == "stores" else ())))


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize("name", lineup_names())
def test_a_built_in_line_up_has_at_most_30_lines(name: str, width: int) -> None:
    lines = [line.plain for line in screen_lines(summary(name), LINKS, width)]
    assert len(lines) <= 30
    assert max(map(cell_len, lines)) <= width


def test_one_model_in_several_stores_is_a_choice_of_stores() -> None:
    found = Findings(summary("stores"))
    assert found.compares_stores
    assert decision(found).advice.startswith("Choose ")
    assert not any(Findings(summary(name)).compares_stores for name in lineup_names() if name != "stores")


def test_kinds_show_their_own_figures() -> None:
    heads = {
        name: next(
            line.plain for line in screen_lines(summary(name), LINKS, 120) if line.plain.startswith("  contender")
        )
        for name in ("neighbours", "films", "trips", "scholarships", "multilingual")
    }
    assert "fidelity@10" in heads["neighbours"]
    assert "Spearman ρ" in heads["neighbours"]
    assert "content" in heads["films"]
    assert "Hits@5" in heads["films"]
    assert "Acc@1 %" in heads["trips"]
    assert "German" in heads["multilingual"]
    caption = "".join(line.plain for line in screen_lines(summary("scholarships"), LINKS, 200))
    assert "eligibility precision 0.111" in caption
