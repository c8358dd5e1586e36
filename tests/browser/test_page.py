"""The page as a person meets it, in a real Chromium."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from bakeoff.report import history
from bakeoff.report.history import Entry
from bakeoff.report.result_page import page
from bakeoff.report.verdict_words import choice_sentence
from bakeoff.results.picks import Limits, choose
from bakeoff.results.schema import Latency, Summary, read_detailed, read_summary

from tests.browser.conftest import Browser, axe_report
from tests.reporting import BREAKOUT, QUOTES, SCRIPT

pytestmark = pytest.mark.browser

ROWS = ".matrix tbody tr.ran"
SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="session")
def priced(result: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Summary, Path]:
    """The same result with prices and times set by hand, so that every limit has something to cut."""
    summary = read_summary(result)
    figures = {"tfidf+faiss": (40.0, 0.0, True), "tfidf+chroma": (55.0, 0.0, True), "fake+faiss": (2.0, 20.0, False),
               "fake+chroma": (3.5, 130.0, False), "bm25": (0.4, 0.0, True)}  # fmt: skip
    rows = []
    for row in summary.rows:
        if row.ran:
            p50, usd, local = figures[row.label]
            assert row.latency is not None
            assert row.cost is not None
            total = msgspec.structs.replace(row.latency.total, p50=p50)
            latency = Latency(embed=row.latency.embed, search=row.latency.search, total=total, doubts=[])
            cost = msgspec.structs.replace(row.cost, usd=usd, usd_per_million_documents=usd)
            rows.append(msgspec.structs.replace(row, local=local, latency=latency, cost=cost))
        else:
            rows.append(row)
    summary = msgspec.structs.replace(summary, rows=rows)
    made = tmp_path_factory.mktemp("priced") / "page.html"
    made.write_text(page(summary, read_detailed(result)))
    return summary, made


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_opens_clean_and_fits(browser: Browser, result: Path, width: int, scheme: str) -> None:
    browser.screen(width, scheme=scheme)
    browser.open(result / "evaluation_report.html")
    assert browser.complaints() == []
    assert browser.run("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    wanted = browser.run("return JSON.parse(document.getElementById('specs').textContent).length")
    assert wanted == 10  # one, none (all cost the same), five cut-offs, one, one, two
    assert browser.run("return document.querySelectorAll('.chart svg').length") == wanted
    policy = browser.run("return document.querySelector('meta[http-equiv=Content-Security-Policy]').content")
    assert "unsafe-eval" not in policy
    # nothing inside stands out of the page, but for what scrolls in a frame of its own
    out = browser.run(
        "return [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, .lists, svg')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))"
    )
    assert out == []


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_axe_finds_nothing(browser: Browser, axe: str, result: Path, width: int, scheme: str) -> None:
    browser.screen(width, scheme=scheme)
    browser.open(result / "evaluation_report.html")
    browser.click("details.query summary")
    browser.run("document.querySelector('#measured details').open = true")
    browser.set("#slide-p50", "1")
    passes, violations = axe_report(browser.driver, axe)
    assert violations == []
    assert "color-contrast" in passes


def test_sorting_moves_the_contenders_and_leaves_the_scales_below(
    browser: Browser, priced: tuple[Summary, Path]
) -> None:
    browser.screen()
    browser.open(priced[1])
    labels = f"return [...document.querySelectorAll('{ROWS}')].map((row) => row.dataset.label)"
    means = {row.label: row.measures["ndcg@10"].mean for row in priced[0].ran}
    assert [means[label] for label in browser.run(labels)] == sorted(means.values(), reverse=True)
    head = '.matrix thead th[data-key="total_p50"]'
    browser.click(f"{head} button")
    by_time = ["bm25", "fake+faiss", "fake+chroma", "tfidf+faiss", "tfidf+chroma"]
    assert browser.run(labels) == by_time
    assert browser.run("return document.querySelector(arguments[0]).getAttribute('aria-sort')", head) == "ascending"
    browser.click(f"{head} button")
    assert browser.run(labels) == by_time[::-1]
    below = browser.run(
        "return [...document.querySelectorAll('.matrix tbody tr')].slice(-4).map((r) => r.dataset.label)"
    )
    assert below == ["oracle", "random", "voyage-4+faiss", "voyage-4+chroma"]
    browser.set("#sorter", "model")
    assert browser.run(labels)[0] == "bm25"


def test_filtering_hides_rows(browser: Browser, priced: tuple[Summary, Path]) -> None:
    browser.screen()
    browser.open(priced[1])
    assert len(browser.texts(ROWS)) == 5
    browser.set("#filter", "chroma")
    assert len(browser.texts(ROWS)) == 2
    browser.set("#filter", "chroma tfidf")
    assert len(browser.texts(ROWS)) == 1
    assert len(browser.texts(".matrix tr.scale")) == 2
    browser.set("#filter", "")
    browser.set("#only-tied", True)
    assert len(browser.texts(ROWS)) == len(priced[0].verdict.best_set)
    browser.set("#only-tied", False)
    browser.set("#limit-p50", "10")
    browser.set("#only-kept", True)
    assert len(browser.texts(ROWS)) == 3


def test_sliders_and_fields_change_the_choice(browser: Browser, priced: tuple[Summary, Path]) -> None:
    summary, made = priced
    browser.screen()
    browser.open(made)
    assert browser.text("#choice") == choice_sentence(summary, choose(summary.rows, summary.verdict, Limits()))
    browser.set("#slide-p50", "0")  # the first stop: only the fastest keeps it
    assert browser.text("#choice").startswith("bm25: NDCG@10")
    assert browser.run("return document.getElementById('limit-p50').value") == "0.4"
    assert browser.run("return document.querySelectorAll('.matrix tr.ran.out').length") == 4
    browser.set("#limit-p50", "50")
    browser.set("#limit-cost", "25")
    expected = choice_sentence(summary, choose(summary.rows, summary.verdict, Limits(p50_ms=50, usd_per_million=25)))
    assert browser.text("#choice") == expected
    browser.set("#limit-offline", True)
    expected = choice_sentence(
        summary, choose(summary.rows, summary.verdict, Limits(p50_ms=50, usd_per_million=25, offline=True))
    )
    assert browser.text("#choice") == expected
    browser.set("#limit-p50", "0.1")
    assert browser.text("#choice") == "Nothing that ran is within these limits."


def test_the_page_chooses_as_the_library_does(browser: Browser, priced: tuple[Summary, Path]) -> None:
    summary, made = priced
    browser.screen()
    browser.open(made)
    cases = list(itertools.product((None, 0.4, 3, 41, 60), (None, 0, 25, 200), (None, 0.05, 0.5), (False, True)))
    theirs = browser.run(
        "return arguments[0].map(([p50, cost, index, offline]) => bakeoff.choose({p50, cost, index, offline}))", cases
    )
    for (p50, cost, index, offline), found in zip(cases, theirs, strict=True):
        limits = Limits(p50_ms=p50, usd_per_million=cost, index_mb=index, offline=offline)
        choice = choose(summary.rows, summary.verdict, limits)
        expected = {
            "label": choice.pick and choice.pick.label,
            "feasible": choice.feasible,
            "sentence": choice_sentence(summary, choice),
        }
        assert found == expected, limits


def test_a_query_opens_with_answers_grades_and_what_was_missed(browser: Browser, result: Path) -> None:
    summary, detailed = read_summary(result), read_detailed(result)
    browser.screen()
    browser.open(result / "evaluation_report.html")
    query = next(iter(detailed.queries))
    assert browser.run("return document.querySelectorAll('.answer').length") == 0
    browser.click("details.query summary")
    browser.wait("return document.querySelector('.answer')")
    best = next(each for each in detailed.contenders if each.label == summary.verdict.leader)
    answer = best.queries[query]
    assert browser.texts(".answer .lists > div:first-child li > :last-child") == [
        detailed.titles[document] for document in answer.ids[:10]
    ]
    assert browser.texts(".answer .lists > div:first-child .grade") == [str(grade) for grade in answer.grades[:10]]
    relevant = {d for d, grade in detailed.queries[query].grades.items() if grade >= summary.task.rel}
    lost = {detailed.titles[document] for document in relevant - set(answer.ids[:10])}
    shown = browser.texts(".missed li > :last-child")
    assert len(shown) == len(lost)
    assert all(any(text.startswith(title) for title in lost) for text in shown)


def test_queries_are_searched_filtered_and_ordered(browser: Browser, result: Path) -> None:
    summary, detailed = read_summary(result), read_detailed(result)
    browser.screen()
    browser.open(result / "evaluation_report.html")
    category = summary.task.categories[0]
    browser.set("#category", category)
    inside = [query.text for query in detailed.queries.values() if query.category == category]
    assert browser.texts(".query .asked") == inside
    assert browser.text("#count") == f"{len(inside)} of 20 queries."
    browser.set("#find", inside[1])
    assert browser.texts(".query .asked") == [inside[1]]
    browser.set("#find", "")
    browser.set("#category", "")
    browser.set("#order", "hard")
    values = [float(text) for text in browser.texts(".query .val")]
    assert values == sorted(values)


def test_any_two_contenders_can_be_compared(browser: Browser, result: Path) -> None:
    summary = read_summary(result)
    browser.screen()
    browser.open(result / "evaluation_report.html")
    before = browser.run("return document.querySelector('#chart-differences svg').outerHTML")
    labels = browser.run("return [...document.getElementById('versus-a').options].map((o) => o.textContent)")
    browser.set("#versus-a", str(labels.index("bm25")))
    browser.set("#versus-b", str(labels.index("tfidf+faiss")))
    assert browser.run("return document.querySelector('#chart-differences svg').outerHTML") != before
    pair = next(each for each in summary.verdict.pairs if {each.a, each.b} == {"bm25", "tfidf+faiss"})
    difference = pair.difference if pair.a == "bm25" else -pair.difference
    told = browser.text("#versus")
    assert told.startswith(f"bm25 against tfidf+faiss: {difference:+.3f}".replace("-", "−"))
    wins, losses = (pair.wins, pair.losses) if pair.a == "bm25" else (pair.losses, pair.wins)
    assert told.endswith(f"{wins} won, {pair.ties} tied, {losses} lost.")


def test_hostile_texts_are_shown_as_they_are(browser: Browser, hostile: Path) -> None:
    browser.screen()
    browser.open(hostile / "evaluation_report.html")
    for number in (1, 2):
        browser.click(f"details.query:nth-child({number}) summary")
    browser.wait("return document.querySelectorAll('.answer').length === 2")
    texts = "\n".join(browser.texts(".lists li > :last-child"))
    for title in (SCRIPT, BREAKOUT, QUOTES):
        assert title in texts
    assert any(SCRIPT in text for text in browser.texts(".query .asked"))
    assert SCRIPT in browser.text("h1")
    assert SCRIPT in browser.texts("#category option") or SCRIPT in browser.run(
        "return [...document.querySelectorAll('#category option')].map((o) => o.value)"
    )
    browser.point("#chart-categories svg .mark-rect path")
    tip = browser.wait("const t = document.getElementById('vg-tooltip-element'); return t && t.textContent")
    assert "<script>" in tip or "<img" in tip
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, main script').length") == 0
    assert browser.complaints() == []


def test_printing_leaves_the_controls_out_and_is_light(browser: Browser, result: Path) -> None:
    browser.screen(scheme="dark", media="print")
    browser.open(result / "evaluation_report.html")
    assert browser.texts(".limits, .tools, nav, #queries") == []
    assert browser.run("return getComputedStyle(document.querySelector('.lead')).color") == "rgb(28, 33, 39)"
    browser.screen()
    pdf = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert pdf["data"].startswith("JVBERi")  # %PDF-


def test_a_history_changes_its_measure(browser: Browser, result: Path, tmp_path: Path) -> None:
    first, replace = read_summary(result), msgspec.structs.replace
    second = replace(first, started="2027-01-01T00:00:00+00:00", task=replace(first.task, fingerprint="other"))
    made = tmp_path / "history.html"
    made.write_text(history.page([Entry(name=n, link="", summary=s) for n, s in (("a", first), ("b", second))]))
    browser.screen()
    browser.open(made)
    before = browser.run("return document.querySelector('.chart svg').outerHTML")
    assert "task changed" in browser.text(".chart svg")
    browser.set("#history-measure", "mrr")
    assert browser.run("return document.querySelector('.chart svg').outerHTML") != before
    assert browser.complaints() == []
    browser.screen(390)
    browser.open(made)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
