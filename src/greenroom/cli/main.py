"""The `greenroom` command's first steps: it can be stopped before anything heavy is imported."""

from __future__ import annotations

import sys

from greenroom.cli.process import end_quietly, make_firm


def main() -> None:
    end_quietly()
    make_firm()
    from greenroom.cli.app import start

    sys.exit(start())
