"""The `greenroom` command's first steps: it can be stopped before anything heavy is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import cast

from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.signals import end_quietly
from greenroom.interfaces.cli.streams import make_firm


def main() -> None:
    """The console script."""
    end_quietly()
    make_firm()
    start = cast("Callable[[], int]", load("entry.line", "start"))
    sys.exit(start())
