"""`python -m advlab` is the command `advlab`."""

from .cli import main

if __name__ == "__main__":
    main()
