"""One invocation: open the runtime, run the command, stop cleanly on a signal, turn errors into sentences and codes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import typer

from greenroom.app.context import AppContext, tune_process
from greenroom.app.kit import KitMaker
from greenroom.app.runtime import Runtime
from greenroom.app.settings import home_folder
from greenroom.cli.errors import fields, report
from greenroom.cli.exit_codes import Exit, of_signal
from greenroom.cli.process import answering, end_at_once, heard, hush, kept
from greenroom.cli.render.output import Output
from greenroom.cli.render.progress import Progress, progress_for
from greenroom.cli.setup import Access, Setup, setup_of
from greenroom.core.base.errors import Bug, GreenroomError, Refused, Rejected


class Stop:
    """The first signal stops the work, which then tidies up; the second one ends the process at once."""

    def __init__(self) -> None:
        self.code = Exit.INTERRUPTED
        self._signals = heard()
        self._work: asyncio.Task[Exit] | None = None
        self._taker: Callable[[], None] | None = None

    @contextmanager
    def lent(self, taker: Callable[[], None]) -> Iterator[None]:
        """Meanwhile Ctrl-C calls `taker`, and stops nothing by itself."""
        before, self._taker = self._taker, taker
        try:
            yield
        finally:
            self._taker = before

    def watch(self, work: asyncio.Task[Exit]) -> None:
        """Stop this task when a signal comes."""
        self._work = work
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self.hear, number)

    def hear(self, number: signal.Signals) -> None:
        if number == signal.SIGINT and self._taker is not None:
            self._taker()
            return
        self.code = of_signal(number)
        loop = asyncio.get_running_loop()
        for each in self._signals:
            loop.remove_signal_handler(each)
            signal.signal(each, end_at_once)
        if self._work is not None:
            self._work.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a command works with. `opened` is the runtime of one that has access to the home."""

    setup: Setup
    home: Path
    out: Output
    progress: Progress
    means: AppContext
    stop: Stop
    opened: Runtime | None = None

    @property
    def runtime(self) -> Runtime:
        """The open log."""
        if self.opened is None:
            raise Bug("The command has no access to the home.")
        return self.opened

    @property
    def attended(self) -> bool:
        """Whether a person is there to be asked."""
        at_terminal = self.out.text and not self.setup.quiet and sys.stdin.isatty() and sys.stderr.isatty()
        return at_terminal and self.means.attended


Work: TypeAlias = Callable[[Invocation], Awaitable[Exit | None]]
"""What a command does. One that returns nothing has ended well, and says no more."""


def invoke(context: typer.Context, work: Work, access: Access | None = None) -> int:
    """Run what a command does after it has checked its options."""
    setup = setup_of(context)
    return run(setup, access or setup.access, work)


def run(setup: Setup, access: Access, work: Work) -> int:
    """Run a command to its end and return its exit code."""
    progress, stop = progress_for(setup), Stop()
    with answering() as stream, Output(setup.output_format, stream) as out, kept():
        try:
            tune_process()
            means, home = AppContext(), home_folder(setup.home)
            out.known = {"command": setup.command, "home": str(home)}
            cli = Invocation(setup=setup, home=home, out=out, progress=progress, means=means, stop=stop)
            return asyncio.run(_opened(cli, access, work))
        except BrokenPipeError:
            # The reader of our output has gone: say nothing more, not even while ending.
            hush(stream)
            return Exit.BROKEN_PIPE
        except asyncio.CancelledError:
            return out.result("stopped", stop.code)
        except (GreenroomError, OSError) as error:
            progress.end()
            return out.result("error", report(error, verbose=setup.verbose), **fields(error))


async def _opened(cli: Invocation, access: Access, work: Work) -> Exit:
    runtime: Runtime | None = None
    if (me := asyncio.current_task()) is not None:
        cli.stop.watch(me)
    try:
        if access != "none":
            cli.means.runtime = runtime = await Runtime.open(cli.home, kits=_kits(cli, access), access=access)
        return await work(replace(cli, opened=runtime)) or cli.out.result("ok", Exit.DONE)
    finally:
        cli.progress.end()
        if runtime is not None:
            await runtime.close()
        await cli.means.close()


def _kits(cli: Invocation, access: Access) -> Mapping[str, KitMaker]:
    """What teams run with. It takes half a second to load, and a command that only looks runs none."""
    if access == "look":
        return {}
    from greenroom.app.kits import all_kits
    from greenroom.testing.demo import demo_kits, demo_pace

    return {**all_kits(cli.means), **demo_kits(cli.home, pace=demo_pace(), around=cli.means.around)}


def command(cli: Invocation, *words: str) -> str:
    """A command to type, for the same home."""
    home = ("--home", shlex.quote(str(cli.setup.home))) if cli.setup.home else ()
    return " ".join((os.environ.get("GREENROOM_CALLED_AS", "greenroom"), *home, *words))


def refused(code: str, why: str, hint: str = "") -> Refused:
    """What a rule of the command line refuses: a code for programs, a sentence, and what to type instead."""
    return Refused(Rejected(code=code, why=why, hint=hint))
