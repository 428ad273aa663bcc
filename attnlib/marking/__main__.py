"""`python -m attnlib.marking` is the command `attnlib`."""

import sys

from attnlib.marking.cli import main

if __name__ == "__main__":
    sys.exit(main())
