"""`python -m bakeoff`, if the script is not on the PATH."""

from bakeoff.cli.main import console

if __name__ == "__main__":
    console()
