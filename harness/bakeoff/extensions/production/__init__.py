"""Systems in production: logs, canaries, probes, interleaving, A/B tests, migration. All of it is read-only."""

from bakeoff.core.extensions import Command

_HERE = "bakeoff.extensions.production"
_COMMANDS = f"{_HERE}.commands"
COMMANDS = (
    Command("log", f"{_COMMANDS}.log:log", "Production", "Turn a search log into a task."),
    Command("canary", f"{_COMMANDS}.canary:canary", "Production", "Detect a change in a provider's vectors."),
    Command("probe", f"{_COMMANDS}.probe:probe", "Production", "Compare a live index with exact search."),
    Command("migrate", f"{_COMMANDS}.migrate:migrate", "Production", "Plan a change of embedding model."),
    Command("interleave", f"{_COMMANDS}.traffic:interleave", "Production", "Analyse clicks on interleaved results."),
    Command("ab", f"{_COMMANDS}.traffic:ab", "Production", "Compare the two arms of an A/B test."),
)
WORDS = {"production": f"{_HERE}.words:WORDS"}
API = {"interleave": f"{_HERE}.interleave:interleave"}
SCHEMAS = {"log": f"{_HERE}.search_log:Impression"}
