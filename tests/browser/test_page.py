"""The page as a person meets it, in a real Chromium."""

from __future__ import annotations

import base64
import io
import itertools
import json
import shutil
import threading
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from bakeoff.extensions.several_results import history
from bakeoff.extensions.several_results.history import Entry
from bakeoff.extensions.several_results.site import Site
from bakeoff.report import render
from bakeoff.report.result_page import page
from bakeoff.report.verdict_words import Findings, choice_sentence
from bakeoff.results.picks import Limits, choose
from bakeoff.results.schema import Latency, Summary, read_detailed, read_summary
from pypdf import PdfReader

from tests.browser.conftest import Browser, axe_report
from tests.report.made import pair, situations
from tests.reporting import BREAKOUT, QUOTES, SCRIPT
from tests.terminal import bakeoff

pytestmark = pytest.mark.browser

ROWS = ".matrix tbody tr.ran"
SCREENS = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]
WIDTHS = (390, 768, 1024, 1280, 1440)
REFERENCE = Path(__file__).parents[2] / "results" / "reference"


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the built-in result, made now."""
    made = tmp_path_factory.mktemp("reference") / "page.html"
    assert render(REFERENCE, page=made) == []
    return made


@pytest.fixture(scope="session")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """68 rows, of which one has a name that nobody would choose."""
    summary, detailed = situations()["many-rows"], read_detailed(REFERENCE)
    asked = next(iter(detailed.contenders))
    contenders = [msgspec.structs.replace(asked, label=row.label) for row in summary.ran]
    made = tmp_path_factory.mktemp("many") / "page.html"
    summary = msgspec.structs.replace(summary, lineup=read_summary(REFERENCE).lineup)
    made.write_text(page(summary, msgspec.structs.replace(detailed, contenders=contenders)))
    return made


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
    assert browser.run("return document.querySelectorAll('.chart svg').length") == 2  # what is open
    browser.run("document.getElementById('method').open = true")
    browser.wait("return document.documentElement.dataset.charts === 'all'")
    wanted = browser.run("return Object.keys(JSON.parse(document.getElementById('specs').textContent)).length - 1")
    assert (
        wanted == 10
    )  # latency, categories, five cut-offs, two stages, pairs; the chart for slides is not on the page
    assert browser.run("return document.querySelectorAll('.chart svg').length") == wanted
    labels = browser.run("return [...document.querySelectorAll('.chart')].map((e) => e.getAttribute('aria-label'))")
    assert len(set(labels)) == wanted
    assert not any("Vega" in label for label in labels)
    policy = browser.run("return document.querySelector('meta[http-equiv=Content-Security-Policy]').content")
    assert "unsafe-eval" not in policy
    browser.run("document.getElementById('export').open = true")
    # nothing inside stands out of the page, but for what scrolls in a frame of its own
    out = browser.run(
        "return [...document.querySelectorAll('main *')].filter((e) => e.checkVisibility()"
        " && !e.closest('.scroll, .lists, svg') && e.getBoundingClientRect().right > innerWidth + 1)"
        ".map((e) => e.outerHTML.slice(0, 120))"
    )
    assert out == []


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_axe_finds_nothing(browser: Browser, axe: str, result: Path, width: int, scheme: str) -> None:
    browser.screen(width, scheme=scheme)
    browser.open(result / "evaluation_report.html")
    browser.click("details.query summary")
    browser.run(
        "document.querySelectorAll('#method, #method details, .doc, .brief details').forEach((e) => e.open = true)"
    )
    browser.wait("return document.documentElement.dataset.charts === 'all'")
    browser.click(".matrix .open")
    browser.set("#limit-p50", "1")
    passes, violations = axe_report(browser.driver, axe)
    assert violations == []
    assert "color-contrast" in passes


def test_the_decision_is_in_one_fold(browser: Browser, reference: Path) -> None:
    browser.screen(1440, 900)
    browser.open(reference)
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    assert browser.run(bottom, "h1") < browser.run(bottom, "#matrix") < browser.run(bottom, ".picks") <= 900
    assert browser.run("return document.querySelector('.plot').getBoundingClientRect().width") >= 250
    assert browser.run("return document.querySelector('.matrix thead').getBoundingClientRect().top") < 300
    heights = browser.run(
        f"return [...document.querySelectorAll('{ROWS}')].map((e) => e.getBoundingClientRect().height)"
    )
    assert len(heights) == 7  # 13 rows
    assert max(heights) <= 44


def test_a_phone_has_four_columns_and_the_rest_on_demand(browser: Browser, reference: Path) -> None:
    browser.screen(390, 844)
    browser.open(reference)
    assert browser.run("return document.documentElement.scrollHeight") <= 5000
    assert browser.texts(".matrix thead th") == ["Model", "Verdict", "NDCG@10", "p50 ms"]
    frame = "const e = document.querySelector('#matrix > .scroll'); return e.scrollWidth - e.clientWidth"
    assert browser.run(frame) <= 0
    assert browser.texts(".matrix tr.more") == []
    browser.click(f"{ROWS} td")
    (more,) = browser.texts(".matrix tr.more")
    assert all(text in more for text in ("Precision@5", "granite+chroma", "search p50 ms"))
    browser.click(f"{ROWS} td")
    assert browser.texts(".matrix tr.more") == []


@pytest.mark.parametrize("width", WIDTHS)
def test_names_never_break_inside_a_word(browser: Browser, reference: Path, long_names: Path, width: int) -> None:
    for made in (reference, long_names):
        browser.screen(width)
        browser.open(made)
        broken = browser.run(
            """const broken = [];
               for (const name of document.querySelectorAll(".matrix .open, .pick, .badge span, h1")) {
                 const text = name.firstChild;
                 for (const word of text.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
                   const range = document.createRange();
                   range.setStart(text, word.index);
                   range.setEnd(text, word.index + word[0].length);
                   if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1) broken.push(word[0]);
                 }
               }
               return broken;"""
        )
        assert broken == []
        assert browser.run("return document.documentElement.scrollWidth") <= width


def test_many_rows_are_short(browser: Browser, long_names: Path) -> None:
    browser.screen(1440)
    browser.open(long_names)
    assert browser.complaints() == []
    assert browser.run("return document.documentElement.scrollHeight") < 4000
    assert browser.run(f"return document.querySelectorAll('{ROWS}').length") == 34
    assert len(browser.texts(ROWS)) == 5  # a line for each model
    browser.click(".matrix .unfold")
    assert len(browser.texts(ROWS)) == 5 + 10
    browser.click(".matrix .unfold")
    browser.set("#filter", "wordllama chroma")
    assert len(browser.texts(ROWS)) == 12
    assert all("wordllama" in text for text in browser.texts(f"{ROWS} th"))


def test_many_rows_fit_a_phone(browser: Browser, long_names: Path) -> None:
    browser.screen(390, 844)
    browser.open(long_names)
    frame = "const e = document.querySelector('#matrix > .scroll'); return e.scrollWidth - e.clientWidth"
    assert browser.run(frame) <= 0
    assert browser.run("return document.documentElement.scrollHeight") <= 5000


def test_the_tooltip_is_a_table_with_interval_and_timing(browser: Browser, reference: Path) -> None:
    browser.screen()
    browser.open(reference)
    browser.point("#chart-quality-latency .mark-symbol path")
    browser.wait("const t = document.getElementById('vg-tooltip-element'); return t && t.textContent")
    cells = "#vg-tooltip-element td"
    shown = browser.run(f"return [...document.querySelectorAll('{cells}')].map((e) => getComputedStyle(e).display)")
    assert set(shown) == {"table-cell"}
    keys = browser.texts(f"{cells}.key")
    assert [key.strip(" :") for key in keys] == ["contender", "NDCG@10", "95% interval", "p50 ms per query", "timing"]


def test_sorting_moves_lines(browser: Browser, priced: tuple[Summary, Path]) -> None:
    browser.screen()
    browser.open(priced[1])
    first = f"return [...document.querySelectorAll('{ROWS}')].map((row) => JSON.parse(row.dataset.labels)[0])"
    means = {row.label: row.measures["ndcg@10"].mean for row in priced[0].ran}
    assert [means[label] for label in browser.run(first)] == sorted(
        {row.label: means[row.label] for row in priced[0].ran if "chroma" not in row.label}.values(), reverse=True
    )
    head = '.matrix thead th[data-key="p50"]'
    browser.click(f"{head} button")
    by_time = ["bm25", "fake+faiss", "tfidf+faiss"]
    assert browser.run(first) == by_time
    assert browser.run("return document.querySelector(arguments[0]).getAttribute('aria-sort')", head) == "ascending"
    browser.click(f"{head} button")
    assert browser.run(first) == by_time[::-1]
    after = browser.run(
        f"return [...document.querySelectorAll('{ROWS}')].map((row) => row.nextElementSibling.className)"
    )
    assert after == ["more"] * 3


def test_limits_change_the_choice_the_rows_and_the_marks(browser: Browser, priced: tuple[Summary, Path]) -> None:
    summary, made = priced
    browser.screen()
    browser.open(made)
    assert len(browser.texts(ROWS)) == 3
    assert not browser.run("return document.getElementById('choice').checkVisibility()")
    browser.set("#limit-p50", "3")
    limits = Limits(p50_ms=3)
    assert browser.text("#choice").startswith(choice_sentence(summary, choose(summary.rows, summary.verdict, limits)))
    assert len(browser.texts(ROWS)) == 2  # bm25 and fake, whose second store is too slow
    assert browser.texts(".matrix span.out") == ["chroma", "3.5", "342 kB", "$130.00"]
    browser.set("#limit-cost", "25")
    browser.set("#limit-offline", True)
    limits = Limits(p50_ms=3, usd_per_million=25, offline=True)
    assert browser.text("#choice").startswith(choice_sentence(summary, choose(summary.rows, summary.verdict, limits)))
    assert len(browser.texts(ROWS)) == 1
    browser.set("#limit-p50", "0.1")
    assert browser.texts(ROWS) == []
    for field in ("#limit-p50", "#limit-cost"):
        browser.set(field, "")
    browser.set("#limit-offline", False)
    assert len(browser.texts(ROWS)) == 3


def test_marks_follow_the_limits(browser: Browser, result: Path, tmp_path: Path) -> None:
    """By hand: all may be best, the pairs show each better than the next, and the leader has the largest index."""
    summary, replace = read_summary(result), msgspec.structs.replace
    order = [group.name for group in Findings(summary).groups]
    firsts = [group.first.label for group in Findings(summary).groups]
    standings = {
        label: replace(one, mark="leads" if label == firsts[0] else "may be best")
        for label, one in summary.verdict.standings.items()
    }
    rows = [
        replace(row, index_bytes=1_000_000 * (3 - order.index(row.label.partition("+")[0]))) if row.ran else row
        for row in summary.rows
    ]
    pairs = [pair(a, b, 0.3, 0.2, 0.4) for a, b in itertools.combinations(firsts, 2)]
    verdict = replace(
        summary.verdict, situation="not settled", leader=firsts[0], standings=standings, best_set=list(standings),
        pairs=pairs,
    )  # fmt: skip
    made = tmp_path / "page.html"
    made.write_text(page(replace(summary, verdict=verdict, rows=rows), read_detailed(result)))
    browser.screen()
    browser.open(made)
    marks = f"return [...document.querySelectorAll('{ROWS}:not([hidden]) .badge b')].map((e) => e.textContent)"
    assert browser.run(marks) == ["★", "≈", "≈"]
    browser.set("#limit-index", "2")
    assert browser.run(marks) == ["★", ""]
    browser.set("#limit-index", "3")
    assert browser.run(marks) == ["★", "≈", "≈"]


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
    assert browser.run("return document.querySelectorAll('.answer').length") == 0
    browser.click("details.query summary")
    query = browser.run("return document.querySelector('details.query').dataset.query")
    browser.wait("return document.querySelector('.answer')")
    best = next(each for each in detailed.contenders if each.label == summary.verdict.leader)
    answer = best.queries[query]
    assert browser.texts(".answer .lists > div:first-child li summary") == [
        detailed.titles[document] for document in answer.ids[:10]
    ]
    browser.click(".answer .lists li summary")
    browser.wait("return document.querySelector('.doc p')")
    assert browser.text(".doc p") == detailed.texts[answer.ids[0]]
    asked = detailed.queries[query].text.lower().split()
    for word in browser.texts(".answer mark"):
        assert any(word.lower().startswith(each[:3]) for each in asked)
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
    browser.set("#order", "task")
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
    browser.run("location.hash = '#method'")
    browser.wait("return document.documentElement.dataset.charts === 'all'")
    before = browser.run("return document.querySelector('#chart-differences svg').outerHTML")
    labels = browser.run("return [...document.getElementById('versus-a').options].map((o) => o.textContent)")
    browser.set("#versus-a", str(labels.index("bm25")))
    browser.set("#versus-b", str(labels.index("tfidf+faiss")))
    assert browser.run("return document.querySelector('#chart-differences svg').outerHTML") != before
    two = next(each for each in summary.verdict.pairs if {each.a, each.b} == {"bm25", "tfidf+faiss"})
    difference = two.difference if two.a == "bm25" else -two.difference
    told = browser.text("#versus")
    shown = browser.run("return document.getElementById('versus').dataset.shown")
    assert shown == str(two.p_holm <= 0.05).lower()
    assert told.startswith(f"bm25 against tfidf+faiss: {difference:+.3f}".replace("-", "−"))
    wins, losses = (two.wins, two.losses) if two.a == "bm25" else (two.losses, two.wins)
    assert told.endswith(f"{wins} won, {two.ties} tied, {losses} lost.")


def test_hostile_texts_are_shown_as_they_are(browser: Browser, hostile: Path) -> None:
    browser.screen()
    browser.open(hostile / "evaluation_report.html")
    for number in (1, 2):
        browser.click(f"details.query:nth-child({number}) summary")
    browser.wait("return document.querySelectorAll('.answer').length === 2")
    browser.run("document.querySelectorAll('.doc').forEach((e) => e.open = true)")
    texts = "\n".join(browser.texts(".lists li > :last-child"))
    for title in (SCRIPT, BREAKOUT, QUOTES):
        assert title in texts
    assert any(SCRIPT in text for text in browser.texts(".query .asked"))
    assert SCRIPT in browser.text("header")
    assert SCRIPT in browser.texts("#category option") or SCRIPT in browser.run(
        "return [...document.querySelectorAll('#category option')].map((o) => o.value)"
    )
    browser.point("#chart-categories svg .mark-rect path:nth-child(2)")
    tip = browser.wait("const t = document.getElementById('vg-tooltip-element'); return t && t.textContent")
    assert "<script>" in tip or "<img" in tip
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, main script').length") == 0
    assert browser.complaints() == []


def test_printing_leaves_the_controls_out_and_is_light(browser: Browser, result: Path) -> None:
    browser.screen(scheme="dark", media="print")
    browser.open(result / "evaluation_report.html")
    assert browser.texts(".limits, .tools, nav, #queries") == []
    assert browser.run("return getComputedStyle(document.querySelector('h1')).color") == "rgb(28, 33, 39)"
    head = "return getComputedStyle(document.querySelector('.matrix thead')).display"
    assert browser.run(head) == "table-header-group"  # which browsers repeat on every sheet
    browser.screen()
    pdf = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert pdf["data"].startswith("JVBERi")  # %PDF-


def test_the_head_of_the_matrix_is_on_every_printed_sheet(browser: Browser, long_names: Path) -> None:
    """On sheets so low that the matrix needs several."""
    browser.screen()
    browser.open(long_names)
    low = {"paperWidth": 11, "paperHeight": 5, "preferCSSPageSize": False}
    pdf = PdfReader(io.BytesIO(base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", low)["data"])))
    head = {"Model", "Verdict", "NDCG@10"}
    texts = [sheet.extract_text() for sheet in pdf.pages]
    sheets = [set(text.split()) for text in texts if "faiss" in text and "Why" not in text]
    assert len(sheets) > 1
    assert [head <= words for words in sheets] == [True] * len(sheets)


def test_the_page_makes_its_own_exports(browser: Browser, result: Path) -> None:
    browser.screen()
    browser.open(result / "evaluation_report.html")
    files: dict[str, str] = {}
    for number in range(6):
        name, link = browser.driver.execute_async_script(
            "const done = arguments[1];"
            "bakeoff.link(document.querySelectorAll('#export button')[arguments[0]]).then(done)",
            number,
        )
        files[name] = link
    text = {name: unquote(link.partition(",")[2]) for name, link in files.items() if ";charset" in link}
    for name in ("matrix.csv", "matrix.tex"):
        assert text[name] == (result / name).read_text()
    assert json.loads(text["matrix.json"]) == json.loads((result / "matrix.json").read_text())
    table = [line for line in text["pull-request.md"].splitlines() if line.startswith("|")]
    assert len(table) == 2 + 3
    assert len({line.count("|") for line in table}) == 1
    assert base64.b64decode(files["scores.png"].partition(",")[2]).startswith(b"\x89PNG")
    assert text["scores.svg"].startswith("<svg")
    assert "var(--" not in text["scores.svg"]
    assert browser.complaints() == []


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


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_pages_of_sweeps_and_load_tests_open_clean_and_fit(
    browser: Browser, axe: str, tmp_path: Path, width: int, scheme: str
) -> None:
    where = ("--synthetic", "300", "--dimensions", "8", "--out", "out")
    assert bakeoff("sweep", *where, "--rounds", "1", "--set", "ef=8", cwd=tmp_path).returncode == 0
    load = ("loadtest", *where, "--seconds", "0.2", "--clients", "1", "--clients", "2", "--clients", "3")
    assert bakeoff(*load, cwd=tmp_path).returncode == 0
    browser.screen(width, scheme=scheme)
    for made in (tmp_path / "out").glob("*/*.html"):
        browser.open(made)
        assert browser.complaints() == []
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.run("return document.querySelectorAll('.chart svg').length") >= 1
        assert axe_report(browser.driver, axe)[1] == []


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_site_lists_results_and_shows_two_side_by_side(
    browser: Browser, axe: str, result: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    for name in ("a", "b"):
        shutil.copytree(result, tmp_path / name)
    with Site(tmp_path, 0) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            browser.screen(width, scheme=scheme)
            browser.driver.get(f"http://127.0.0.1:{site.server_address[1]}/")
            browser.wait("return document.documentElement.dataset.charts")
            assert browser.run("return document.documentElement.scrollWidth") <= width
            assert axe_report(browser.driver, axe)[1] == []
            for number in (0, 1):
                browser.run("document.querySelectorAll('input[name=result]')[arguments[0]].click()", number)
            browser.click("#results button")
            browser.wait("return location.pathname === '/compare' && document.readyState === 'complete'")
            assert len(browser.texts("iframe")) == 2
            assert browser.run("return document.documentElement.scrollWidth") <= width
            browser.run("document.querySelectorAll('iframe').forEach((e) => e.remove())")  # each is looked at alone
            assert axe_report(browser.driver, axe)[1] == []
        finally:
            site.shutdown()
            thread.join()
