"""Measures by models of users, and for incomplete judgments."""

_HERE = "bakeoff.extensions.measures"
MEASURES = {
    "rbp": f"{_HERE}.expected_reciprocal_rank:RankBiasedPrecision",
    "rbp_residual": f"{_HERE}.expected_reciprocal_rank:RankBiasedResidual",
    "err": f"{_HERE}.expected_reciprocal_rank:ExpectedReciprocalRank",
    "bpref": f"{_HERE}.preferences:BPref",
    "infap": f"{_HERE}.preferences:InferredAP",
}
