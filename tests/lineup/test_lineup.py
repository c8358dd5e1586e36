from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core.paths import default_lineup
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.lineup import Lineup
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import options_of

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
        ("task = \n", r"lineup\.toml: is not valid TOML.*line 1", ""),
        (HEAD, r"contender is missing", ""),
        (HEAD + "contender = []", r"there is no \[\[contender\]\]", ""),
        (HEAD + "colour = 1\n" + FAKE, r"there is no key 'colour'", ""),
        (HEAD + 'rounds = "three"\n' + FAKE, r"rounds.*Expected `int`", ""),
        (HEAD + "rounds = 0\n" + FAKE, r"rounds: must be at least 1", ""),
        (HEAD + 'measures = ["ndgc@10"]\n' + FAKE, r"measures 1: unknown measure 'ndgc'", "did you mean 'ndcg'"),
        (HEAD + "measures = []\n" + FAKE, "there is no measure", ""),
        (HEAD + FAKE.replace("fake", "minilmm"), r"contender 1.*unknown provider 'minilmm'", "'minilm'"),
        (HEAD + FAKE.replace("faiss", "fais"), r"contender 1.*unknown store 'fais'", "'faiss'"),
        (HEAD + FAKE + "options = { dimension = 3 }\n", r"no option 'dimension'", "'dimensions'"),
        (HEAD + '[[contender]]\nranker = "bm52"\n', r"unknown ranker 'bm52'", "'bm25'"),
        (HEAD + '[[contender]]\nranker = "bm25"\nstore = "faiss"\n', "a lexical ranker has no store", ""),
        (HEAD + '[[contender]]\nprovider = "fake"\n', "names no store", ""),
        (HEAD + FAKE + 'prompt = "default"\n', "contender 1, prompt: provider 'fake' takes no prompt", "remove"),
        (
            HEAD + FAKE + 'prompt = { query = "q: " }\n',
            "contender 1, prompt: provider 'fake' takes no prompt",
            "remove",
        ),
        (HEAD + '[[contender]]\nstore = "faiss"\n', "name one of provider, ranker", ""),
        (HEAD + '[[contender]]\nranker = "bm25"\nmodel = "x"\n', "a lexical ranker has no model", "remove it"),
        (HEAD + '[[contender]]\nanswers = "a.npy"\ndimensions = 3\n', "a file of answers has no dimensions", ""),
        (HEAD + FAKE + "seeds = [1]\n", "a provider has no seeds", ""),
        (HEAD + '[[contender]]\nanswers = "a.npy"\nseeds = [1]\n', "seeds and {seed} go together", "model-{seed}"),
        (HEAD + '[[contender]]\nanswers = "{seed}/-.npy"\nseeds = [1]\n', "these answers need a label", ""),
        (HEAD + '[[contender]]\nlabel = "a"\nanswers = { x = "a.npy" }\n', "'x' is not a seed", "model-1"),
        (HEAD + '[[contender]]\nlabel = "a"\nanswers = { 01 = "a.npy" }\n', "'01' is not a seed", ""),
        (HEAD + FAKE + '[[fusion]]\nof = ["fake", "fake"]\n', "two or more different contenders", ""),
        (HEAD + FAKE + FAKE, r"two contenders are called 'fake\+faiss'", "label"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, text: str, said: str, remedy: str) -> None:
    with pytest.raises(InputError, match=f"(?s){said}") as caught:
        _read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "lineup.toml"))
    assert remedy in caught.value.remedy


def test_narrowing(tmp_path: Path) -> None:
    lineup = Lineup.read(default_lineup())
    assert [c.label for c in lineup.narrowed(["minilm", "bm25"]).contenders] == [
        "minilm+faiss",
        "minilm+chroma",
        "bm25",
    ]
    assert {c.identity.store for c in lineup.narrowed(stores=["chroma"]).contenders} == {"chroma"}
    with pytest.raises(InputError, match="--contender 'minilmm' matches no contender") as caught:
        lineup.narrowed(["minilmm"])
    assert "'minilm'" in caught.value.remedy
    with pytest.raises(InputError, match="unknown store 'fais'"):
        lineup.narrowed(stores=["fais"])
    with pytest.raises(InputError, match="no contender is left"):
        lineup.narrowed(["bm25"], ["faiss"])


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
    assert label.meaning.startswith("how the row's name begins")
    assert (
        "@prompt and @chunking follow where there are several, then @dimensions-precision and +store" in label.meaning
    )


def test_sizes_and_precisions_are_rows_that_share_their_vectors(tmp_path: Path) -> None:
    lineup = _read(tmp_path, HEAD + FAKE + 'dimensions = [128, 64]\nprecision = ["float32", "binary"]\n')
    assert [contender.label for contender in lineup.contenders] == [
        "fake@128+faiss",
        "fake@128-binary+faiss",
        "fake@64+faiss",
        "fake@64-binary+faiss",
    ]
    assert len({contender.shares for contender in lineup.contenders}) == 1
    with pytest.raises(InputError, match="'int4' is not one of: float32, int8, binary"):
        _read(tmp_path, HEAD + FAKE + 'precision = "int4"\n')


def test_what_says_how_much_is_judged_decides_nothing(tmp_path: Path) -> None:
    """Less of a residual is surer, and neither it nor the judged share says who ranks better."""
    for head in ('measures = ["mrr"]\nprimary = "rbp_residual"\n', 'measures = ["judged@10", "rbp_residual"]\n'):
        with pytest.raises(InputError, match="can't decide") as caught:
            _read(tmp_path, head + HEAD + FAKE)
        assert caught.value.place == "primary"
        assert "ndcg@10" in caught.value.remedy
    lineup = _read(tmp_path, 'measures = ["judged@10", "mrr", "p@5"]\n' + HEAD + FAKE)
    assert str(lineup.primary) == "mrr"
