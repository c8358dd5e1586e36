"""One right answer: by hand, against scikit-learn and against closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.facts import TableColumn
from bakeoff.core.paths import lineup_file, root
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.kinds import trips
from bakeoff.extensions.kinds.single import scores_of
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.save import save
from bakeoff.results.schema import read_detailed, read_summary
from bakeoff.running.runner import Outcome, run
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers.errors import InputError
from scipy import stats
from sklearn.metrics import f1_score

from tests.errors import refuses, says

SCORES = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.5, 0.5, 0.0], [0.1, 0.2, 0.7]], dtype=np.float32)
TARGETS = np.array([0, 0, 1, 2])
# ranks: 1; 0.7 is above 0.2, so 2; 0.5 is shared, so 2; 1
RANKS = np.array([1, 2, 2, 1])
HEAD = 'measures = ["acc@1", "mrr"]\nprimary = "mrr"\nrounds = 1\n'
TASK = 'task = {{ kind = "single", truth = "{truth}", {classes} }}\n'


def _lineup(folder: Path, contenders: str, classes: str = "classes = 3", truth: str = "targets.npy") -> Lineup:
    path = folder / "own.toml"
    path.write_text(HEAD + TASK.format(truth=truth, classes=classes) + contenders)
    return Lineup.read(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "targets.npy", TARGETS)
    np.save(tmp_path / "model.npy", SCORES)
    return tmp_path


def _values(outcome: Outcome, label: str) -> dict[str, list[float]]:
    return outcome.scores[label]


def test_an_array_scores_what_hand_work_says(folder: Path) -> None:
    outcome = run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n'))
    scores = _values(outcome, "model")
    assert scores["acc@1"] == [1, 0, 0, 1]
    assert scores["acc@3"] == [1, 1, 1, 1]
    assert scores["mrr"] == pytest.approx(1 / RANKS)
    assert scores["ndcg@10"] == pytest.approx(1 / np.log2(RANKS + 1))
    # predictions: 0, 1, 0 (the other of the two that tie), 2
    expected = f1_score(TARGETS, [0, 1, 0, 2], average="weighted", zero_division=0)
    assert outcome.extras.figures["models"]["model"]["weighted_f1"] == [pytest.approx(expected)]


def test_ndcg_is_nothing_beyond_ten() -> None:
    measures = [Measure.parse(text) for text in ("ndcg@10", "mrr", "acc@10")]
    scores = scores_of(np.array([1, 10, 11, 20, 0]), 20, measures)
    assert scores[measures[0]] == pytest.approx([1, 1 / np.log2(11), 0, 0, 0])
    assert scores[measures[1]] == pytest.approx([1, 1 / 10, 1 / 11, 1 / 20, 0])
    assert scores[measures[2]].tolist() == [1, 1, 0, 0, 0]


def test_random_is_the_harmonic_number_over_n(folder: Path) -> None:
    outcome = run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n'))
    figures = outcome.extras.figures["models"]["random"]
    assert figures["mrr"] == [pytest.approx((1 + 1 / 2 + 1 / 3) / 3)]
    assert figures["acc@1"] == [pytest.approx(1 / 3)]


def test_a_random_order_of_1187_places_has_an_mrr_of_two_thirds_of_a_percent(folder: Path) -> None:
    np.save(folder / "model.npy", np.random.default_rng(0).random((4, 1187)))
    outcome = run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n', "classes = 1187"))
    (mrr,) = outcome.extras.figures["models"]["random"]["mrr"]
    assert mrr == pytest.approx((np.log(1187) + 0.5772156649 + 1 / (2 * 1187)) / 1187, rel=1e-6)  # Euler's H_n / n
    assert round(100 * mrr, 2) == 0.65


def test_majority_learns_from_training_where_there_is_any(folder: Path) -> None:
    # here class 0 is right twice, then 1 and 2 in the order of their ids
    outcome = run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n'))
    majority = {str(measure): values for measure, values in outcome.baselines["majority class"].items()}
    assert majority["mrr"] == pytest.approx([1, 1, 1 / 2, 1 / 3])
    expected = f1_score(TARGETS, [0, 0, 0, 0], average="weighted", zero_division=0)
    assert outcome.extras.figures["models"]["majority class"]["weighted_f1"] == [pytest.approx(expected)]
    (folder / "train.txt").write_text("2\n2\n1\n")
    outcome = run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n', 'classes = 3, train = "train.txt"'))
    majority = {str(measure): values for measure, values in outcome.baselines["majority class"].items()}
    assert majority["mrr"] == pytest.approx([1 / 3, 1 / 3, 1 / 2, 1])


def test_ranked_lists_score_like_the_array_they_were_made_from(folder: Path) -> None:
    lines = [
        {
            "query": str(row),
            "ranked": [str(c) for c in np.argsort(-np.array(values), kind="stable")],
            "scores": sorted(values, reverse=True),
        }
        for row, values in enumerate(SCORES.tolist())
    ]
    (folder / "lists.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    outcome = run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n[[contender]]\nanswers = "lists.jsonl"\n'))
    assert _values(outcome, "lists") == _values(outcome, "model")
    figures = outcome.extras.figures["models"]
    assert figures["lists"]["weighted_f1"] == pytest.approx(figures["model"]["weighted_f1"])


def test_an_answer_that_is_not_listed_scores_nothing(folder: Path) -> None:
    (folder / "short.jsonl").write_text('{"query": "0", "ranked": ["0"]}\n{"query": "1", "ranked": ["1"]}\n')
    scores = _values(run(_lineup(folder, '[[contender]]\nanswers = "short.jsonl"\n')), "short")
    assert scores["mrr"] == [1, 0, 0, 0]


def test_retrieval_finds_the_one_right_item(folder: Path) -> None:
    items = [{"id": name, "text": text} for name, text in (("x", "copper mine"), ("y", "lake boats"))]
    (folder / "items.json").write_text(json.dumps(items))
    (folder / "truth.jsonl").write_text(
        '{"query": "q1", "answer": "x", "text": "copper"}\n{"query": "q2", "answer": "x", "text": "boats"}\n'
    )
    lineup = _lineup(
        folder,
        '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n',
        'items = "items.json"',
        "truth.jsonl",
    )
    outcome = run(lineup)
    assert _values(outcome, "bm25")["mrr"] == [1, 0.5]  # x shares no word with boats, so it comes after y, which does
    assert _values(outcome, "tfidf+faiss")["mrr"] == [1, 0.5]
    # both predict q1 right and q2 wrong: F1 of x is 2 × 1 / (2 + 1), all truths are x
    assert outcome.extras.figures["models"]["bm25"]["weighted_f1"] == [pytest.approx(2 / 3)]


def test_seeds_give_a_spread_and_a_paired_test(folder: Path) -> None:
    rng = np.random.default_rng(5)
    means: dict[str, list[float]] = {"one": [], "two": []}
    for seed in (1, 2, 3):
        for name in means:
            scores = rng.random((4, 3)).astype(np.float32)
            np.save(folder / f"{name}-{seed}.npy", scores)
            ranks = [(row >= row[target]).sum() for row, target in zip(scores, TARGETS, strict=True)]
            means[name].append(float(np.mean(1 / np.array(ranks))))
    contenders = "".join(f'[[contender]]\nanswers = "{name}-{{seed}}.npy"\nseeds = [1, 2, 3]\n' for name in means)
    outcome = run(_lineup(folder, contenders))
    assert [row.contender.label for row in outcome.ran] == ["one", "two"]
    figures = outcome.extras.figures["models"]
    assert figures["one"]["mrr"] == pytest.approx(means["one"])
    table, tests = outcome.extras.sections
    assert table.rows[0][5] == pytest.approx([np.mean(means["one"]), np.std(means["one"], ddof=1)])
    assert table.rows[0][-1] == 3
    assert tests.rows[0][-1] == pytest.approx(stats.ttest_rel(means["one"], means["two"]).pvalue)
    assert np.mean(_values(outcome, "one")["mrr"]) == pytest.approx(np.mean(means["one"]))


def test_seeds_that_all_differ_alike_have_the_sign_tests_p(folder: Path) -> None:
    """Two seeds with the same scores each: the t-test has no spread to go by, and two equal signs have p = 2 / 2²."""
    for seed in (1, 2):
        np.save(folder / f"one-{seed}.npy", SCORES)
        np.save(folder / f"two-{seed}.npy", 1 - SCORES)
    contenders = "".join(f'[[contender]]\nanswers = "{name}-{{seed}}.npy"\nseeds = [1, 2]\n' for name in ("one", "two"))
    tests = run(_lineup(folder, contenders)).extras.sections[1]
    assert tests.rows[0][3] != 0
    assert tests.rows[0][-1] == 0.5


def test_percentages_on_request(folder: Path) -> None:
    outcome = run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n', "classes = 3, percent = true"))
    table = outcome.extras.sections[0]
    assert isinstance(table.head[1], TableColumn)
    assert (table.head[1].unit, table.head[1].digits) == ("%", 2)
    assert table.rows[0][1] == 50


def test_a_file_is_read_by_its_own_seed_in_any_order(folder: Path) -> None:
    for seed, scores in ((1, SCORES), (2, 1 - SCORES)):
        np.save(folder / f"model-{seed}.npy", scores)
    lineup = _lineup(folder, '[[contender]]\nanswers = "model-{seed}.npy"\nseeds = [1, 2]\n')
    kind, (contender,) = load_kind(lineup.task, lineup.folder), lineup.contenders
    task, measures = kind.task(), [Measure.parse("mrr")]
    later, first, again = (
        kind.read(task, contender, seed, folder / f"model-{seed}.npy", measures, 99) for seed in ("2", "1", "1")
    )
    assert list(later.files) == ["ranks/model-2.npy"]
    assert list(first.files) == list(again.files) == ["ranks/model-1.npy"]
    assert first.scores[measures[0]] == pytest.approx(1 / RANKS)
    assert first.figures == again.figures != later.figures


def test_each_model_and_seed_has_a_flat_json_in_percent_and_the_array_of_sums(folder: Path) -> None:
    rng = np.random.default_rng(8)
    targets = rng.integers(0, 30, 211)
    np.save(folder / "targets.npy", targets)
    for seed in (1, 2):
        scores = rng.random((211, 30)) + 0.3 * np.eye(30)[targets]  # no ties
        np.save(folder / f"mhsa-{seed}.npy", scores)
    lists = [{"query": str(row), "ranked": [str(int(targets[row]))]} for row in range(100)]
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, lists)))
    contenders = (
        '[[contender]]\nlabel = "mhsa"\nanswers = "mhsa-{seed}.npy"\nseeds = [1, 2]\n'
        '[[contender]]\nanswers = "lists.jsonl"\n'
    )
    target = save(run(_lineup(folder, contenders, "classes = 30")), folder / "results")
    for seed in (1, 2):
        scores = np.load(folder / f"mhsa-{seed}.npy")
        order = np.argsort(-scores, axis=1)
        ranks = np.argwhere(order == targets[:, None])[:, 1] + 1
        gains = np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0)
        correct = [int((ranks <= k).sum()) for k in (1, 3, 5, 10)]
        array = json.loads((target / "result_array" / f"mhsa-{seed}.json").read_text())
        assert array == [*correct, pytest.approx((1 / ranks).sum()), pytest.approx(gains.sum()), 211]
        assert all(isinstance(value, int) for value in [*array[:4], array[6]])
        f1 = f1_score(targets, order[:, 0], average="weighted", zero_division=0)
        shares = [count / 211 for count in correct] + [(1 / ranks).mean(), gains.mean(), f1]
        keys = ["acc@1", "acc@3", "acc@5", "acc@10", "mrr", "ndcg", "f1"]
        flat = json.loads((target / "metrics" / f"mhsa-{seed}.json").read_text())
        assert flat == {key: round(100 * float(share), 2) for key, share in zip(keys, shares, strict=True)}
    assert json.loads((target / "result_array" / "lists.json").read_text()) == [100, 100, 100, 100, 100, 100, 211]
    assert json.loads((target / "metrics" / "lists.json").read_text())["acc@1"] == round(100 * 100 / 211, 2)


def test_the_result_has_the_ranks_and_the_rankings(folder: Path) -> None:
    target = save(run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n')), folder / "results")
    assert np.load(target / "ranks" / "model.npy").tolist() == RANKS.tolist()
    detailed = read_detailed(target)
    assert detailed.contenders[0].queries["2"].ids == ["0", "1", "2"]  # the right answer, 1, after its equal
    row = next(row for row in read_summary(target).rows if row.label == "model")
    assert (row.row_type, row.latency, row.cost) == ("given", None, None)


@pytest.mark.parametrize(
    ("classes", "contender", "said"),
    [
        ("classes = 4", 'answers = "model.npy"', "4 samples"),
        ("classes = 3", 'answers = "other.npz"', "other.npz"),
        ("classes = 3", 'answers = "none.npy"', "none.npy"),
    ],
)
def test_a_file_of_answers_that_does_not_fit_costs_its_row(
    folder: Path, classes: str, contender: str, said: str
) -> None:
    np.savez(folder / "other.npz", scores=SCORES, targets=TARGETS[::-1])
    (lost,) = run(_lineup(folder, f"[[contender]]\n{contender}\n", classes)).not_run
    says(failure_words(lost.failure), said)


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ("classes = 2", "0"),
        ('items = "i.json", classes = 3', "classes"),
    ],
)
def test_a_bad_task_is_named(folder: Path, classes: str, said: str) -> None:
    with refuses(InputError, said):
        run(_lineup(folder, '[[contender]]\nanswers = "model.npy"\n', classes))


@pytest.mark.parametrize(
    ("contender", "said"),
    [
        ('answers = "model-{seed}.npy"', "contender 1, answers"),
        ('answers = "model.npy"\nseeds = [1]', "contender 1, answers"),
        ('answers = "model.npy"\nstore = "faiss"', "contender 1, store"),
        ('ranker = "bm25"\nseeds = [1]', "contender 1, seeds"),
    ],
)
def test_bad_contenders_are_named(folder: Path, contender: str, said: str) -> None:
    with refuses(InputError, said, file="own.toml"):
        _lineup(folder, f"[[contender]]\n{contender}\n")


def test_the_trips_are_what_their_generator_makes(tmp_path: Path) -> None:
    trips.write(tmp_path)
    shipped = root() / "queries" / "trips"
    for made in tmp_path.iterdir():
        if made.suffix == ".npy":
            assert np.load(made) == pytest.approx(np.load(shipped / made.name), rel=1e-5)
        else:
            assert made.read_text() == (shipped / made.name).read_text()


def test_the_built_in_models_stand_in_their_order() -> None:
    outcome = run(Lineup.read(lineup_file(Path("trips"))))
    means = {label: np.mean(scores["mrr"]) for label, scores in outcome.scores.items()}
    harmonic = sum(1 / n for n in range(1, 25)) / 24
    assert means["markov"] > means["majority"] > means["noisy"] > harmonic
