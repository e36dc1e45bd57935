"""Runs the command line with `python -m footplate`."""

from footplate.cli.main import main

if __name__ == "__main__":
    main()
