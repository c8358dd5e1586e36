from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core.paths import default_lineup
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.lineup import Lineup
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import options_of

from tests.errors import refuses, says

HEAD = 'task = "wikipedia"\n'
FAKE = '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'


def _read(folder: Path, text: str) -> Lineup:
    path = folder / "lineup.toml"
    path.write_text(text)
    return Lineup.read(path)


def test_the_default_line_up_has_a_row_for_every_store(tmp_path: Path) -> None:
    labels = [contender.label for contender in Lineup.read(default_lineup()).contenders]
    local = ("minilm", "granite", "use", "wordllama", "tfidf", "fake")
    served = ("nomic-embed-text", "mxbai-embed-large", "text-embedding-3-small", "gemini-embedding-001", "voyage-4")
    expected = {f"{name}+{store}" for name in (*local, *served) for store in ("faiss", "chroma")}
    assert set(labels) == {"bm25", *expected}


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    lineup = _read(tmp_path, HEAD + FAKE)
    assert [str(measure) for measure in lineup.measures] == ["p@5", "recall@10", "f1@5", "mrr", "ndcg@10"]
    assert str(lineup.primary) == "ndcg@10"
    assert lineup.name == "lineup"


def test_a_store_with_options_is_a_row_of_its_own(tmp_path: Path) -> None:
    store = 'store = ["faiss", { name = "faiss", label = "hnsw", options = { index = "HNSW32" } }]'
    lineup = _read(tmp_path, HEAD + f'[[contender]]\nprovider = "fake"\n{store}\n')
    assert [contender.label for contender in lineup.contenders] == ["fake+faiss", "fake+hnsw"]
    assert lineup.contenders[1].to_dict()["store_options"] == {"index": "HNSW32"}
    assert lineup.contenders[0].shares == lineup.contenders[1].shares


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("task = \n", "lineup.toml", ""),
        (HEAD, "lineup.toml", ""),
        (HEAD + "contender = []", "[[contender]]", ""),
        (HEAD + "colour = 1\n" + FAKE, "'colour'", ""),
        (HEAD + 'rounds = "three"\n' + FAKE, "`int`", ""),
        (HEAD + "rounds = 0\n" + FAKE, "rounds", ""),
        (HEAD + 'measures = ["ndgc@10"]\n' + FAKE, "'ndgc'", "'ndcg'"),
        (HEAD + "measures = []\n" + FAKE, "measures", ""),
        (HEAD + FAKE.replace("fake", "minilmm"), "'minilmm'", "'minilm'"),
        (HEAD + FAKE.replace("faiss", "fais"), "'fais'", "'faiss'"),
        (HEAD + FAKE + "options = { dimension = 3 }\n", "'dimension'", "'dimensions'"),
        (HEAD + '[[contender]]\nranker = "bm52"\n', r"unknown ranker 'bm52'", "'bm25'"),
        (HEAD + '[[contender]]\nranker = "bm25"\nstore = "faiss"\n', "contender 1, store", ""),
        (HEAD + '[[contender]]\nprovider = "fake"\n', "contender 1, store", ""),
        (HEAD + FAKE + 'prompt = "default"\n', "'fake'", "remove"),
        (
            HEAD + FAKE + 'prompt = { query = "q: " }\n',
            "'fake'",
            "remove",
        ),
        (HEAD + '[[contender]]\nstore = "faiss"\n', "contender 1", ""),
        (HEAD + '[[contender]]\nranker = "bm25"\nmodel = "x"\n', "contender 1, model", ""),
        (HEAD + '[[contender]]\nanswers = "a.npy"\ndimensions = 3\n', "contender 1, dimensions", ""),
        (HEAD + FAKE + "seeds = [1]\n", "contender 1, seeds", ""),
        (HEAD + '[[contender]]\nanswers = "a.npy"\nseeds = [1]\n', "contender 1, answers", "model-{seed}"),
        (HEAD + '[[contender]]\nanswers = "{seed}/-.npy"\nseeds = [1]\n', "contender 1, label", ""),
        (HEAD + '[[contender]]\nlabel = "a"\nanswers = { x = "a.npy" }\n', "'x'", "model-1"),
        (HEAD + '[[contender]]\nlabel = "a"\nanswers = { 01 = "a.npy" }\n', "'01'", ""),
        (HEAD + FAKE + '[[fusion]]\nof = ["fake", "fake"]\n', "fusion 1, of", ""),
        (HEAD + FAKE + FAKE, "'fake+faiss'", "label"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, text: str, said: str, remedy: str) -> None:
    with refuses(InputError, said, file="lineup.toml") as caught:
        _read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "lineup.toml"))
    says(caught.value.remedy, remedy)


def test_narrowing(tmp_path: Path) -> None:
    lineup = Lineup.read(default_lineup())
    assert [c.label for c in lineup.narrow(["minilm", "bm25"]).contenders] == [
        "minilm+faiss",
        "minilm+chroma",
        "bm25",
    ]
    assert {c.identity.store for c in lineup.narrow(stores=["chroma"]).contenders} == {"chroma"}
    with refuses(InputError, "--contender", "'minilmm'") as caught:
        lineup.narrow(["minilmm"])
    assert "'minilm'" in caught.value.remedy
    with refuses(InputError, "'fais'"):
        lineup.narrow(stores=["fais"])
    with refuses(InputError):
        lineup.narrow(["bm25"], ["faiss"])


def test_a_label_is_how_the_names_of_rows_begin(tmp_path: Path) -> None:
    """The page of all keys says so: what a row is made with follows the label, and nothing replaces it."""
    text = HEAD + FAKE.replace('store = "faiss"', 'store = ["faiss", "chroma"]') + 'label = "mine"\n'
    assert 'store = ["faiss", "chroma"]' in text
    one = _read(tmp_path, text + "dimensions = 64\nchunking = { size = 100 }\n")
    assert [contender.label for contender in one.contenders] == ["mine@64+faiss", "mine@64+chroma"]
    several = _read(tmp_path, text + "dimensions = 64\nchunking = [{ size = 100 }, { size = 200 }]\n")
    assert [contender.label for contender in several.contenders][::2] == [
        "mine@recursive-100@64+faiss",
        "mine@recursive-200@64+faiss",
    ]
    (label,) = [option for option in options_of(ContenderEntry) if option.name == "label"]
    says(label.meaning, "dimensions-precision")
    says(label.meaning, "dimensions-precision")


def test_sizes_and_precisions_are_rows_that_share_their_vectors(tmp_path: Path) -> None:
    lineup = _read(tmp_path, HEAD + FAKE + 'dimensions = [128, 64]\nprecision = ["float32", "binary"]\n')
    assert [contender.label for contender in lineup.contenders] == [
        "fake@128+faiss",
        "fake@128-binary+faiss",
        "fake@64+faiss",
        "fake@64-binary+faiss",
    ]
    assert len({contender.shares for contender in lineup.contenders}) == 1
    with refuses(InputError, "'int4'", "float32", place="$.contender[0].precision", file="lineup.toml"):
        _read(tmp_path, HEAD + FAKE + 'precision = "int4"\n')


def test_what_says_how_much_is_judged_decides_nothing(tmp_path: Path) -> None:
    """Less of a residual is surer, and neither it nor the judged share says who ranks better."""
    for head in ('measures = ["mrr"]\nprimary = "rbp_residual"\n', 'measures = ["judged@10", "rbp_residual"]\n'):
        with refuses(InputError, place="primary", file="lineup.toml") as caught:
            _read(tmp_path, head + HEAD + FAKE)
        assert caught.value.place == "primary"
        assert "ndcg@10" in caught.value.remedy
    lineup = _read(tmp_path, 'measures = ["judged@10", "mrr", "p@5"]\n' + HEAD + FAKE)
    assert str(lineup.primary) == "mrr"
