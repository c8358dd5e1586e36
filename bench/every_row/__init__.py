"""Two line-ups with every row type, for `same_figures.py`."""
