"""`python -m footplate`: the command line."""

from footplate.cli.main import main

if __name__ == "__main__":
    main()
