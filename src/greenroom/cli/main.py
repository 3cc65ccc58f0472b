"""Entry point of the `greenroom` command: installs signal handlers before it imports anything heavy."""

from __future__ import annotations

import sys

from greenroom.cli.process import install_exit_handlers, secure_streams


def main() -> None:
    install_exit_handlers()
    secure_streams()
    from greenroom.cli.app import start

    sys.exit(start())
