"""Small files in the formats of the five documents that docs/five-documents/ maps: always the same, from seeds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
PAPERS, SAMPLES, PLACES, FILMS = 520, 40, 24, 12
LISTS = ("overall", "content", "vibes")
# Query and articles with grades where people write them, comments included.
QUERIES = """{
  "queries": [
    {
      "query_id": "geo_001",
      "query_text": "towns beside the lake",
      "category": "geographic",
      "expected_results": [11, 12, 14],
      "relevance_annotations": {
        "11": 3,  // on the shore
        "12": 2,
        "13": 0,  // a desert
        "14": 2,
        "15": 1
      }
    },
    {
      "query_id": "his_001",
      "query_text": "copper miners of the desert",
      "category": "historical",
      "expected_results": [13],
      "relevance_annotations": {"11": 0, "12": 0, "13": 3, "14": 1, "15": 2}
    }
  ],
  "categories": {"geographic": 1, "historical": 1}
}"""
SUMMARIES = {
    11: ("Ashby", "One of the towns on the lake, with a harbour."),
    12: ("Brook", "A village beside a river that feeds the lake."),
    13: ("Copper Flat", "Miners left this place in the desert when the copper was gone."),
    14: ("Dunmore", "The largest of the towns, far from any lake; copper made it rich."),
    15: ("Eastgate", "A museum of miners and their tools."),
}


def wikipedia(folder: Path) -> None:
    """A database of articles, of which one has no summary; and the JSON files as a person may have written them."""
    pool = json.loads((ROOT / "corpora" / "wikipedia" / "articles.json").read_text(encoding="utf-8"))["articles"]
    with sqlite3.connect(folder / "wikipedia.db") as connection:
        connection.execute(
            "CREATE TABLE page_summaries (page_id INTEGER, title TEXT, short_summary TEXT, long_summary TEXT, "
            "key_topics TEXT, best_city TEXT, best_county TEXT, best_state TEXT, overall_confidence REAL)"
        )
        connection.execute("CREATE TABLE articles (pageid INTEGER, html_file TEXT, categories TEXT)")
        pool.append({"page_id": 1, "title": "Nothing, Utah", "summary": "", "state": "Utah", "categories": []})
        for page in pool:
            kinds, place = json.dumps(page["categories"]), [page.get(key) for key in ("city", "county", "state")]
            summary = (page["page_id"], page["title"], None, page["summary"], kinds, *place, 0.9)
            connection.execute("INSERT INTO page_summaries VALUES (?,?,?,?,?,?,?,?,?)", summary)
            connection.execute("INSERT INTO articles VALUES (?,?,?)", (page["page_id"], "pages/x.html", kinds))
    (folder / "files").mkdir()
    articles = [{"page_id": page, "title": title, "summary": text, "city": None, "state": "Utah", "county": None,
                 "categories": ["city"], "html_file": f"pages/{page}_hash.html",
                 "embedding_metadata": {"chunk_strategy": "semantic", "max_chunk_size": 512}}
                for page, (title, text) in SUMMARIES.items()]  # fmt: skip
    head = {"selection_date": "2024-01-XX", "total_available": 5, "selection_method": "stratified_random", "seed": 42}
    write_json(folder / "files" / "evaluate_articles.json", {"articles": articles, "metadata": head})
    (folder / "files" / "evaluate_queries.json").write_text(QUERIES, encoding="utf-8")


def ada(folder: Path) -> None:
    """Three arrays without ids, of which the second copies the first worse than the third; pairs with targets."""
    rng = np.random.default_rng(11)
    reference = rng.normal(size=(PAPERS, 32))
    turned = reference @ np.linalg.qr(rng.normal(size=(32, 32)))[0]
    arrays = {
        "ada_embeddings": reference,
        "sentence_transformer": (turned + 1.2 * rng.normal(size=turned.shape))[:, :24],
        "finetuned_st": (turned + 0.4 * rng.normal(size=turned.shape))[:, :24],
    }
    for name, vectors in arrays.items():
        (folder / "models" / name).mkdir(parents=True)
        np.save(folder / "models" / name / "holdout_embeddings.npy", vectors.astype(np.float32))
    pairs = rng.integers(0, PAPERS, size=(60, 2))
    cosines = [float(reference[a] @ reference[b] / np.linalg.norm(reference[a]) / np.linalg.norm(reference[b]))
               for a, b in pairs]  # fmt: skip
    rows = [f"{a},{b},{cosine:.6f}" for (a, b), cosine in zip(pairs, cosines, strict=True)]
    (folder / "val.csv").write_text("\n".join(["paper1,paper2,ada_sim", *rows]) + "\n")


def films(folder: Path) -> None:
    """Twelve films with three lists each, and three arrays; some vectors are equal, so that ids must decide."""
    rng = np.random.default_rng(12)
    names = [f"tt{number:07}" for number in rng.permutation(10 * FILMS)[:FILMS]]
    entries = []
    for name in names:
        others = [other for other in names if other != name]
        lists = {f"5_most_similar_movies_{what}_ordered": rng.permutation(others)[:5].tolist() for what in LISTS}
        entries.append({"movie_id": name, **lists})
    write_json(folder / "similar_movies.json", entries)
    (folder / "ids.txt").write_text("\n".join(names) + "\n")
    for space in ("anchor", "content", "vibe"):
        vectors = rng.normal(size=(FILMS, 4))
        vectors[5] = vectors[2]
        np.save(folder / f"{space}.npy", vectors.astype(np.float32))


def next_location(folder: Path) -> None:
    """The right places, and logits of one model with three seeds."""
    rng = np.random.default_rng(13)
    right = rng.integers(0, PLACES, size=SAMPLES)
    np.save(folder / "true_y.npy", right)
    for seed in (1, 2, 3):
        logits = rng.normal(size=(SAMPLES, PLACES))
        logits[np.arange(SAMPLES), right] += 1.5
        np.save(folder / f"mhsa-{seed}.npy", logits.astype(np.float32))


def profiles(folder: Path) -> None:
    """Two snapshots, golden students, best weights and weights of one's own."""
    import pandas as pd

    processed = folder / "data" / "processed"
    processed.mkdir(parents=True)
    items = scholarships()
    pd.DataFrame(items[:20]).to_parquet(processed / "scholarships_snapshot_20260301.parquet")
    pd.DataFrame(items).to_parquet(processed / "scholarships_snapshot_20260315.parquet")
    write_json(processed / "best_weights.json", {"similarity": 0.6, "keywords": 0.4})
    write_json(folder / "mine.json", {"similarity": 0.2, "keywords": 0.8})
    write_json(folder / "students.json", students())


WORDS = ("robotics", "design", "law", "music", "coding", "nursing")
MAJORS, STATES, LEVELS = ("engineering", "law", "arts"), ("UT", "CA"), ("undergraduate", "graduate")


def scholarships() -> list[dict[str, Any]]:
    """Thirty items; a third of each attribute is open to everyone."""
    rng = np.random.default_rng(14)

    def some(values: tuple[str, ...]) -> list[str]:
        return [] if rng.random() < 1 / 3 else sorted(rng.choice(values, size=rng.integers(1, 3), replace=False))

    return [
        {"scholarship_id": f"S{number:02}", "title": f"Award {number}", "embedding_key": f"key-{number}",
         "description": f"For people in {' and '.join(rng.choice(WORDS, size=3, replace=False))}.",
         "amount_max": None if number % 10 == 9 else float(rng.integers(5, 100) * 100),
         "min_gpa": None if rng.random() < 1 / 3 else float(rng.integers(20, 38)) / 10,
         "states_allowed": some(STATES), "majors_allowed": some(MAJORS), "education_levels": some(LEVELS),
         "keywords": some(WORDS)}
        for number in range(30)
    ]  # fmt: skip


def students() -> list[dict[str, Any]]:
    """Three, of whom the last is eligible for next to nothing and shares no keyword."""
    return [
        {"profile_id": "ut_engineer", "gpa": 3.6, "state": "UT", "major": "engineering",
         "education_level": "undergraduate", "keywords": ["robotics", "design"]},
        {"profile_id": "ca_artist", "gpa": 3.1, "state": "CA", "major": "arts",
         "education_level": "graduate", "keywords": ["music", "design", "coding"]},
        {"profile_id": "elsewhere", "gpa": 2.0, "state": "NY", "major": "history",
         "education_level": "graduate", "keywords": ["zebra"]},
    ]  # fmt: skip


def write_json(path: Path, content: Any) -> None:
    """As people's scripts write it."""
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


MAKERS: dict[str, Callable[[Path], None]] = {
    "Wikipedia evaluation framework": wikipedia,
    "Evaluation against Ada-002": ada,
    "Film guide": films,
    "Next-location metrics": next_location,
    "Offline evaluation of golden profiles": profiles,
}
