"""One invocation of a command: opens the runtime, handles signals, turns errors into messages and exit codes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import typer

from greenroom.app.context import AppContext, tune_process
from greenroom.app.messages import LANGUAGES, set_language, translate
from greenroom.app.runtime import Runtime
from greenroom.app.settings import home_folder
from greenroom.cli.errors import error_fields, report_error
from greenroom.cli.exit_codes import Exit, exit_for_signal
from greenroom.cli.process import end_at_once, find_ending_signals, open_answer_stream, restore_signals, silence
from greenroom.cli.render.output import Output
from greenroom.cli.render.progress import Progress, progress_for
from greenroom.cli.setup import Access, CommandSetup, read_setup
from greenroom.core.base.errors import Bug, GreenroomError, WorldFault
from greenroom.core.ports.executor import CapabilitiesFactory


class SignalStop:
    """Stops the command on the first signal, so that it can clean up, and ends the process on the second."""

    def __init__(self) -> None:
        self.code, self.last_words = Exit.INTERRUPTED, ""
        self._signals = find_ending_signals()
        self._work: asyncio.Task[Exit] | None = None
        self._on_interrupt: Callable[[], object] | None = None

    @contextmanager
    def redirect_interrupts(self, on_interrupt: Callable[[], object]) -> Iterator[None]:
        """Call `on_interrupt` on Ctrl-C inside the block, and stop nothing."""
        previous, self._on_interrupt = self._on_interrupt, on_interrupt
        try:
            yield
        finally:
            self._on_interrupt = previous

    def watch(self, work: asyncio.Task[Exit]) -> None:
        """Cancel this task when a signal arrives."""
        self._work = work
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self.handle_signal, number)

    def handle_signal(self, number: signal.Signals) -> None:
        if number == signal.SIGINT and self._on_interrupt is not None:
            self._on_interrupt()
            return
        self.code = exit_for_signal(number)
        loop = asyncio.get_running_loop()
        for signal_number in self._signals:
            loop.remove_signal_handler(signal_number)
            signal.signal(signal_number, partial(end_at_once, last_words=self.last_words))
        if self._work is not None:
            self._work.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a command works with. `opened` is the runtime, if the command has access to the home."""

    setup: CommandSetup
    home: Path
    out: Output
    progress: Progress
    app: AppContext
    stop: SignalStop
    opened: Runtime | None = None

    @property
    def runtime(self) -> Runtime:
        if self.opened is None:
            raise Bug("The command has no access to the home.")
        return self.opened

    @property
    def is_attended(self) -> bool:
        """Whether a person can be asked."""
        at_terminal = self.out.is_text and not self.setup.quiet and sys.stdin.isatty() and sys.stderr.isatty()
        return at_terminal and self.app.is_attended


CommandBody: TypeAlias = Callable[[Invocation], Awaitable[Exit | None]]
"""The body of a command. None as its result means success."""


def invoke(context: typer.Context, work: CommandBody, access: Access | None = None) -> int:
    """Run the body of a command whose options were checked."""
    setup = read_setup(context)
    return run(setup, access or setup.access, work)


def run(setup: CommandSetup, access: Access, work: CommandBody) -> int:
    """Run a command and return its exit code."""
    progress, stop = progress_for(setup), SignalStop()
    with open_answer_stream() as stream, Output(setup.output_format, stream) as out, restore_signals():
        try:
            tune_process()
            home = home_folder(setup.home)
            app = AppContext(home)
            use_language_of(app)
            out.command_info = {"command": setup.command, "home": str(home)}
            cli = Invocation(setup=setup, home=home, out=out, progress=progress, app=app, stop=stop)
            return asyncio.run(_run_opened(cli, access, work))
        except BrokenPipeError:
            # The reader of our output is gone: write nothing more, not even at exit.
            silence(stream)
            return Exit.BROKEN_PIPE
        except asyncio.CancelledError:
            if access == "make" and not out.has_begun:
                progress.note(translate("context.stopped_early"), style="bold")
            return out.result("stopped", stop.code)
        except (GreenroomError, OSError) as error:
            progress.end()
            return out.result("error", report_error(error, verbose=setup.verbose), **error_fields(error))


def use_language_of(app: AppContext | None = None) -> None:
    """Use the language of the settings for messages. A command that needs broken settings reports them itself."""
    try:
        set_language((app or AppContext()).language)
    except WorldFault:
        set_language(LANGUAGES[0])


async def _run_opened(cli: Invocation, access: Access, work: CommandBody) -> Exit:
    runtime: Runtime | None = None
    if (current_task := asyncio.current_task()) is not None:
        cli.stop.watch(current_task)
    try:
        if access != "none":
            cli.app.runtime = runtime = await Runtime.open(
                cli.home, capability_factories=_kits(cli, access), access=access
            )
        return await work(replace(cli, opened=runtime)) or cli.out.result("ok", Exit.DONE)
    finally:
        cli.progress.end()
        if runtime is not None:
            await runtime.close()
        await cli.app.close()


def _kits(cli: Invocation, access: Access) -> Mapping[str, CapabilitiesFactory]:
    """Return the capabilities of all kinds of teams. Loading takes half a second, so read-only commands get none."""
    if access in ("look", "act"):
        return {}
    from greenroom.app.capability_factories import make_capability_factories
    from greenroom.testing.demo import demo_pace, make_demo_factories

    return {
        **make_capability_factories(cli.app),
        **make_demo_factories(cli.home, pace=demo_pace(), wrap_model=cli.app.use_script),
    }


def render_command(cli: Invocation, *words: str) -> str:
    """Return a command line to type, with the same `--home`."""
    home = ("--home", shlex.quote(str(cli.setup.home))) if cli.setup.home else ()
    return " ".join((os.environ.get("GREENROOM_CALLED_AS", "greenroom"), *home, *words))
