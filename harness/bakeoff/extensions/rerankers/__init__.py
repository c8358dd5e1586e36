"""Rerankers: Cohere, Voyage, and local cross-encoders."""

_HERE = "bakeoff.extensions.rerankers"
RERANKERS = {
    "cross_encoder": f"{_HERE}.cross_encoder:CrossEncoder",
    "cohere": f"{_HERE}.hosted:CohereReranker",
    "voyage": f"{_HERE}.hosted:VoyageReranker",
}
