"""Corpus size: the line-up over growing samples of the corpus, and where its scores are heading."""

from bakeoff.core.extensions import Command

_COMMAND = "bakeoff.extensions.corpus_size.commands:corpus_size"
COMMANDS = (Command("corpus-size", _COMMAND, "Decide", "Score growing samples of the corpus."),)
