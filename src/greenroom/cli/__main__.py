"""`python -m greenroom.cli`: the entry point for processes that the command starts itself."""

from __future__ import annotations

from greenroom.cli.main import main

if __name__ == "__main__":
    main()
