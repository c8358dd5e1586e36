"""Public data sets: BEIR folders, ir_datasets and the Hugging Face hub by name, and results in MTEB's layout."""

from bakeoff.core.extensions import Command

_HERE = "bakeoff.extensions.datasets"
FORMATS = {
    "beir": f"{_HERE}.beir:load",
    "ir_datasets": f"{_HERE}.ir_datasets:load",
    "hub": f"{_HERE}.hub:load",
    "mteb": f"{_HERE}.mteb:load",
}
COMMANDS = (Command("export-mteb", f"{_HERE}.mteb_results:export_mteb", "Decide", "Write a result in MTEB's layout."),)
