"""The page of a large result: 5,000 documents × 300 queries × 10 contenders stays below 15 MB and opens in 3 s.

    python bench/report.py [--documents 5000] [--queries 300] [--rounds 5]

A real run over made-up words, then the page in a real Chromium: until it can be read and used (load), and until the
last chart is drawn. A page of the same size that only holds the data's text is the peer for opening. Needs chromium
and chromedriver, and selenium. Exits 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.report.console import Bars
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import Settings, run

MEGABYTES, SECONDS = 15.0, 3.0
FLAGS = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
         "disable-component-update", "disable-sync")  # fmt: skip


def write_task(folder: Path, documents: int, queries: int) -> Path:
    """Documents of a hundred words, queries of six, twenty judged documents a query; ten contenders."""
    rng = np.random.default_rng(42)
    words = np.array(["".join(rng.choice(list("aeioulmnrst"), 6)) for _ in range(3000)])
    weights = 1 / np.arange(1, len(words) + 1)
    weights /= weights.sum()

    def text(length: int) -> str:
        return " ".join(rng.choice(words, length, p=weights))

    articles = [
        {"page_id": number, "title": f"{text(6)} {number}", "summary": text(100), "categories": ["made up"]}
        for number in range(1, documents + 1)
    ]
    truth, asked = {}, []
    for number in range(queries):
        judged = rng.choice(documents, 20, replace=False) + 1
        grades = {str(document): int(rng.integers(0, 4)) for document in judged}
        truth[f"q{number}"] = grades
        asked.append(
            {
                "query_id": f"q{number}",
                "query_text": text(6),
                "category": f"category {number % 6}",
                "expected_results": [int(document) for document, grade in grades.items() if grade >= 2],
                "relevance_annotations": {document: grade for document, grade in grades.items() if grade},
            }
        )
    (folder / "articles.json").write_text(json.dumps({"articles": articles}))
    (folder / "queries.json").write_text(json.dumps({"queries": asked}))
    (folder / "truth.json").write_text(json.dumps({"grades": truth}))
    sizes = (32, 48, 64, 96, 128, 192, 256, 384, 512)
    path = folder / "large.toml"
    path.write_text(
        "depth = 100\n[task]\nname = 'large'\nformat = 'native'\narticles = 'articles.json'\nqueries = 'queries.json'\n"
        "ground_truth = 'truth.json'\nrel = 2\n[[contender]]\nranker = 'bm25'\n"
        + "".join(
            f"[[contender]]\nprovider = 'fake'\nlabel = 'fake-{size}'\nstore = 'faiss'\n"
            f"options = {{ dimensions = {size} }}\n"
            for size in sizes
        )
    )
    return path


def opened(page: Path, rounds: int, *, charts: bool) -> tuple[float, float]:
    """Median seconds until the page has loaded, and until the last chart is drawn; a fresh browser each time."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    binary, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not chromedriver:
        raise SystemExit("no Chromium found: apt-get install chromium chromium-driver (Debian)")
    loaded, drawn = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            options = webdriver.ChromeOptions()
            options.binary_location = binary
            for flag in FLAGS:
                options.add_argument(f"--{flag}")
            options.add_argument(f"--user-data-dir={profile}")
            driver = webdriver.Chrome(options=options, service=Service(chromedriver))
            try:
                start = time.perf_counter()
                driver.get(page.as_uri())
                if charts:
                    WebDriverWait(driver, 60, 0.02).until(
                        lambda d: d.execute_script("return document.documentElement.dataset.charts")
                    )
                drawn.append(time.perf_counter() - start)
                timing = "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd / 1000"
                loaded.append(float(driver.execute_script(timing)))
            finally:
                driver.quit()
    return statistics.median(loaded), statistics.median(drawn)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lineup = Lineup.read(write_task(folder, options.documents, options.queries))
        result = save(run(lineup, Settings(progress=Bars())), folder / "results")
        summary = read_summary(result)
        start = time.perf_counter()
        problems = render(result, pictures=True)
        made = time.perf_counter() - start
        page = result / "evaluation_report.html"
        size = page.stat().st_size / 1e6
        peer = folder / "peer.html"
        peer.write_text(
            "<!doctype html><meta charset=utf-8><script type='application/json'>" + "a" * page.stat().st_size
        )
        loaded, drawn = opened(page, options.rounds, charts=True)
        bare, _ = opened(peer, options.rounds, charts=False)
    ran = len(summary.ran)
    print(
        f"{options.documents} documents × {options.queries} queries × {ran} contenders; "
        f"page, exports and pictures in {made:.1f} s"
    )
    for problem in problems:
        print(problem)
    targets = (
        ("size, MB", size, MEGABYTES),
        ("loaded and usable, s", loaded, SECONDS),
        ("all charts, s", drawn, SECONDS),
    )
    for what, figure, target in targets:
        print(f"  {what:<24}{figure:>8.2f}  target {target:g}", "MISSED" if figure > target else "")
    print(f"  {'a bare file of that size':<24}{bare:>8.2f}  s to load: the page takes {loaded / bare:.1f} × as long")
    return int(any(figure > target for _, figure, target in targets))


if __name__ == "__main__":
    sys.exit(main())
