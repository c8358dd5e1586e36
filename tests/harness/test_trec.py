from __future__ import annotations

import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from harness.formats.trec import run_text
from harness.grades import join
from harness.measures import Measure
from harness.metrics import evaluate
from harness.ranking import ordered

IDS = [f"d{number}" for number in range(12)]
SCORES = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(-1e3, 1e3), st.floats(0.5, 0.5000001))


@given(
    st.dictionaries(st.sampled_from(IDS), SCORES, min_size=1),
    st.dictionaries(st.sampled_from(IDS), st.integers(0, 3), min_size=1),
)
def test_ties_and_near_ties_score_the_same_in_trec_eval(scores: dict[str, float], grades: dict[str, int]) -> None:
    rankings = {"q": ordered(scores.items())}
    run = pytrec_eval.parse_run(run_text(rankings, "tag").splitlines())
    theirs = pytrec_eval.RelevanceEvaluator({"q": grades}, {"map", "ndcg", "recip_rank", "P.5"}).evaluate(run)["q"]
    names = {"map": "map", "ndcg": "ndcg", "recip_rank": "mrr", "P_5": "p@5"}
    ours = evaluate(join(rankings, {"q": grades}, ["q"]), [Measure.parse(name) for name in names.values()])
    for name, spelling in names.items():
        assert abs(ours[Measure.parse(spelling)][0] - theirs[name]) < 1e-9
