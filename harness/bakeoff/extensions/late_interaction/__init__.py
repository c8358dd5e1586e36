"""Late interaction: one vector per token, compared by MaxSim, as a row type or as a reranker."""

_HERE = "bakeoff.extensions.late_interaction"
SYSTEMS = {"tokens": f"{_HERE}.row:Tokens"}
RERANKERS = {"maxsim": f"{_HERE}.reranker:MaxSim"}
REGISTRIES = {
    "token-stores": (
        f"{_HERE}.stores:TOKEN_STORES",
        'vectors = "tokens", store = { name = "NAME", options = { … } } in a [[contender]]',
    )
}
