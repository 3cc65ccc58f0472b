"""One invocation: open the runtime, run the command, stop cleanly on a signal, turn errors into sentences and codes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from greenroom.app.runtime import Runtime
from greenroom.app.settings import home_folder
from greenroom.app.tuning import tune_process
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.records import record
from greenroom.interfaces.cli.asked.setup import Setup
from greenroom.interfaces.cli.asked.table import Access
from greenroom.interfaces.cli.display.errors import fields, report
from greenroom.interfaces.cli.display.output import Output
from greenroom.interfaces.cli.display.progress import Progress, progress_for
from greenroom.interfaces.cli.exits import Exit, of_signal
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.means import Means
from greenroom.interfaces.cli.signals import end_at_once, heard, kept
from greenroom.interfaces.cli.streams import answering, hush

if TYPE_CHECKING:
    from greenroom.app.kit import KitMaker


class Stop:
    """The first signal stops the work, which then tidies up; the second one ends the process at once."""

    def __init__(self) -> None:
        self.code = Exit.INTERRUPTED
        self._signals = heard()
        self._work: asyncio.Task[Exit] | None = None
        self._taker: Callable[[], None] | None = None

    @contextmanager
    def lent(self, taker: Callable[[], None]) -> Iterator[None]:
        """Meanwhile Ctrl-C is somebody else's, and stops nothing by itself."""
        before, self._taker = self._taker, taker
        try:
            yield
        finally:
            self._taker = before

    def watch(self, work: asyncio.Task[Exit]) -> None:
        """Stop this task when a signal comes."""
        self._work = work
        loop = asyncio.get_running_loop()
        for one in self._signals:
            loop.add_signal_handler(one, self.hear, one)

    def hear(self, number: signal.Signals) -> None:
        """A signal has come."""
        if number == signal.SIGINT and self._taker is not None:
            self._taker()
            return
        self.code = of_signal(number)
        loop = asyncio.get_running_loop()
        for one in self._signals:
            loop.remove_signal_handler(one)
            signal.signal(one, end_at_once)
        if self._work is not None:
            self._work.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a command works with that wants nothing of the log. Settings and models come when they are asked for."""

    setup: Setup
    home: Path
    out: Output
    progress: Progress
    means: Means
    stop: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Door(Desk):
    """What all other commands work with."""

    runtime: Runtime


Work: TypeAlias = Callable[[Desk], Awaitable[Exit]]


def run(setup: Setup, access: Access, work: Work) -> int:
    """Run a command to its end and return its exit code."""
    progress, stop = progress_for(setup), Stop()
    with answering() as stream, Output(setup.output_format, stream) as out, kept():
        try:
            tune_process()
            return asyncio.run(_watched(Plan(setup=setup, access=access, work=work), out, progress, stop))
        except BrokenPipeError:
            # Whoever read our output has gone: say nothing more, not even while ending.
            hush(stream)
            return Exit.BROKEN_PIPE
        except asyncio.CancelledError:
            return out.result("stopped", stop.code)
        except (GreenroomError, OSError) as error:
            progress.end()
            return out.result("error", report(error, verbose=setup.verbose), **fields(error))


@record
class Plan:
    """What is to be done, and with what."""

    setup: Setup
    access: Access
    work: Work


async def _watched(plan: Plan, out: Output, progress: Progress, stop: Stop) -> Exit:
    task = asyncio.create_task(_opened(plan, out, progress, stop))
    stop.watch(task)
    return await task


async def _opened(plan: Plan, out: Output, progress: Progress, stop: Stop) -> Exit:
    means = Means()
    home = home_folder(plan.setup.home)
    desk = Desk(setup=plan.setup, home=home, out=out, progress=progress, means=means, stop=stop)
    try:
        if plan.access == "none":
            return await plan.work(desk)
        return await _in_the_log(plan, desk, plan.access)
    finally:
        progress.end()
        await means.close()


def _kits(desk: Desk) -> Mapping[str, KitMaker]:
    """What teams run with. It takes its time to load, and who only looks runs none."""
    make = cast("Callable[..., Mapping[str, KitMaker]]", load("runs.kits", "kits"))
    return make(desk.home, desk.means)


async def _in_the_log(plan: Plan, desk: Desk, access: Literal["make", "change", "look"]) -> Exit:
    kinds = {} if access == "look" else _kits(desk)
    runtime = desk.means.runtime = await Runtime.open(desk.home, kits=kinds, access=access)
    try:
        return await plan.work(
            Door(
                setup=desk.setup,
                home=desk.home,
                out=desk.out,
                progress=desk.progress,
                means=desk.means,
                stop=desk.stop,
                runtime=runtime,
            )
        )
    finally:
        desk.progress.end()
        await runtime.close()
