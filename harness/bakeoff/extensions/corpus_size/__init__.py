"""Corpus size: scores on growing samples of the corpus, with extrapolation."""

from bakeoff.core.extensions import Command

_COMMAND = "bakeoff.extensions.corpus_size.commands:corpus_size"
COMMANDS = (Command("corpus-size", _COMMAND, "Decide", "Score growing samples of the corpus."),)
