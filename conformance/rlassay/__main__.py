"""`python -m rlassay`, and the console script."""

from rlassay.cli import main

if __name__ == "__main__":
    main()
