"""One invocation: open the runtime, run the command, stop cleanly on a signal, turn errors into sentences and codes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Final, TypeAlias

import typer

from greenroom.app.runtime import Runtime
from greenroom.app.settings import home_folder
from greenroom.app.tuning import tune_process
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.records import record
from greenroom.interfaces.cli.errors import explain, report
from greenroom.interfaces.cli.exits import Exit, of_signal
from greenroom.interfaces.cli.kits import kits
from greenroom.interfaces.cli.output import Output
from greenroom.interfaces.cli.progress import Progress, progress_for
from greenroom.interfaces.cli.setup import Setup, setup_of

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR: Final = b"\x1b[?25h"


@record
class Door:
    """What a command works with."""

    setup: Setup
    home: Path
    runtime: Runtime
    out: Output
    progress: Progress


Work: TypeAlias = Callable[[Door], Awaitable[Exit]]


class Stop:
    """The first signal stops the work, which then tidies up; the second one ends the process at once."""

    def __init__(self) -> None:
        self.code = Exit.INTERRUPTED
        self._work: asyncio.Task[Exit] | None = None

    def watch(self, work: asyncio.Task[Exit]) -> None:
        """Stop this task when a signal comes."""
        self._work = work
        loop = asyncio.get_running_loop()
        for one in SIGNALS:
            loop.add_signal_handler(one, self._first, one)

    def _first(self, number: signal.Signals) -> None:
        self.code = of_signal(number)
        loop = asyncio.get_running_loop()
        for one in SIGNALS:
            loop.remove_signal_handler(one)
            signal.signal(one, _at_once)
        if self._work is not None:
            self._work.cancel()


def _at_once(number: int, _: FrameType | None) -> None:
    """What is acknowledged is on disk: nothing is lost by not saying goodbye."""
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), SHOW_CURSOR)
    os._exit(of_signal(number))


def run(context: typer.Context, work: Work, *, fatal: str | None = None) -> int:
    """Run a command to its end and return its exit code."""
    setup = setup_of(context)
    out, progress, stop = Output(setup.output_format), progress_for(setup), Stop()
    try:
        tune_process()
        return asyncio.run(_watched(setup, out, progress, work, stop, fatal))
    except BrokenPipeError:
        return _hush()
    except asyncio.CancelledError:
        return out.result("stopped", stop.code)
    except (GreenroomError, TimeoutError) as error:
        progress.end()
        return out.result("error", report(error, verbose=setup.verbose), error=explain(error))


async def _watched(setup: Setup, out: Output, progress: Progress, work: Work, stop: Stop, fatal: str | None) -> Exit:
    task = asyncio.create_task(_opened(setup, out, progress, work, fatal))
    stop.watch(task)
    return await task


async def _opened(setup: Setup, out: Output, progress: Progress, work: Work, fatal: str | None) -> Exit:
    home = home_folder(setup.home).absolute()
    runtime = await Runtime.open(home, kits=kits(home, fatal=fatal))
    try:
        return await work(Door(setup=setup, home=home, runtime=runtime, out=out, progress=progress))
    finally:
        progress.end()
        await runtime.close()


def _hush() -> Exit:
    """Whoever read our output has gone: say nothing more, not even while ending."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return Exit.BROKEN_PIPE
