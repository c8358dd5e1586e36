"""`python -m bakeoff`, for where the script is not on the PATH."""

from bakeoff.cli.main import main

if __name__ == "__main__":
    main()
