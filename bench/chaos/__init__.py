"""Attacks on Bakeoff from outside: kills, signals, faults and fuzzed inputs. `make chaos` runs them all."""
