"""`greenroom demo`: a job from the request to the undo, played by real commands in a real repository.

Only the model is scripted, and served on this machine. After each scene its facts are looked up in the files, in git
and in the log; the first one that does not hold ends the demo with exit code 1.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from platformdirs import user_cache_path

from greenroom.app.settings.home import VARIABLE
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.toolset.sandbox import KNOWN, Wish, tier_in
from greenroom.cli.context import Invocation, invoke, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.follow import follow
from greenroom.cli.interactive.report import report_ending
from greenroom.cli.options import Record, Replay, RunOptions
from greenroom.cli.render.output import harmless
from greenroom.cli.render.team import TeamHistory
from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.state.team import OwnerChanged
from greenroom.testing import demo_job as job
from greenroom.testing.demo import AGENTS, ASKING_KIT, KIT, PACE, PERSON, TASK, WATCHABLE, demo_pace
from greenroom.testing.demo_job import Log, ScriptedProvider, git, read_log

FIRST_LINE: Final = (
    "The model is scripted: no key, no network. Everything else is real: git, files, tests, walls, kill -9."
)
TEAM_LINE: Final = "The agents' replies are scripted. Everything else is real: the log, the files, what they do."
MISSING_CUE: Final = "The script has no reply"
SETTINGS: Final = """\
# The model of the demo: a script, served on this machine while the demo ran.
model = "scripted:coder"

[providers.scripted]
base_url = "{address}"

[prices."scripted:coder"]
input = 0
output = 0
"""
COMMAND_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 10.0
LONGEST_LINE: Final = 1 << 20


class Fact(NamedTuple):
    """A sentence about what was found, and whether it is as it has to be."""

    held: bool
    text: str


def check(text: str, *, held: bool, found: object = "") -> Fact:
    """A fact; one that does not hold says so, and what was found."""
    return Fact(held, text if held else f"not so: {text} (found: {found or 'nothing'})")


# ------------------------------------------------------------------------------------------------------- the commands


class Play:
    """The demo as it is played: its folder, its processes, and what is known by now."""

    def __init__(self, cli: Invocation, folder: Path, pace: float) -> None:
        self.cli, self.folder, self.pace = cli, folder, pace
        self.root, self.home = folder / "shop", folder / "home"
        self.provider = ScriptedProvider(pace)
        self.typed: list[str] = []
        self.before = self.head = self.place = ""
        self.first: Log | None = None
        wish: Wish = "off" if os.environ.get("GREENROOM_SANDBOX") == "off" else "auto"
        self.tier = tier_in(folder / "cache", SandboxSettings(walls=wish), at=folder / "shop").tier
        own = {VARIABLE: "home", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
        self.own = {name: str(folder / part) for name, part in own.items()}
        self.environment = {**job.command_environment(), **self.own, "GREENROOM_SANDBOX": wish}

    def set_up(self, address: str) -> None:
        """Write the settings, and make the repository. Which sandbox holds here was just tried, so that is copied."""
        config, cache = self.folder / "config" / "greenroom", self.folder / "cache" / "greenroom"
        for place in (config, cache):
            place.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(SETTINGS.format(address=address), encoding="utf-8")
        known = user_cache_path("greenroom", appauthor=False) / KNOWN
        if known.is_file():
            shutil.copy(known, cache / KNOWN)
        job.make_repository(self.root)

    def say(self, text: str, first: str = "   ", style: str = "") -> None:
        self.cli.progress.note(f"{first}{text}".rstrip(), style=style)

    def show_command(self, text: str) -> None:
        """Print what a person would type."""
        self.typed.append(text)
        self.say(f"$ {text}", style="cyan")

    @asynccontextmanager
    async def start(self, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Type a command in the repository. When the block ends, so has the process."""
        self.show_command(f"greenroom {shlex.join(words)}")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "greenroom.cli", *words),
            cwd=self.root,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=LONGEST_LINE,
            start_new_session=True,
        )
        reading = asyncio.create_task(self._echo(process))
        try:
            yield process
            await reading
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
            except TimeoutError:
                process.kill()
                await process.wait()
            reading.cancel()

    async def _echo(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for data in process.stdout:
            if line := data.decode(errors="replace").strip():
                self.say(harmless(line), first="   │ ", style="dim")

    async def run(self, *words: str) -> tuple[int, int]:
        """Type a command and wait for its end: its exit code and its process id."""
        async with self.start(*words) as process:
            code = await asyncio.wait_for(process.wait(), COMMAND_TIMEOUT_S)
        return code, process.pid

    def untouched(self) -> Fact:
        """Nothing of the person's is different."""
        now = job.fingerprint(self.root)
        return check(f"your files are as they were: {self.before}", held=now == self.before, found=now)

    def changed(self, log: Log) -> Sequence[str]:
        """The files that the work has changed by now, by its commits."""
        refs = (f"refs/greenroom/{log.team}/@base", f"refs/greenroom/{log.team}/main")
        try:
            return sorted(git(self.root, "diff", "--name-only", *refs).split())
        except WorldFault:
            return ()  # there is no such commit: nothing was changed


# --------------------------------------------------------------------------------------------------------- the scenes


async def show_repository(play: Play) -> Sequence[Fact]:
    for words in (("log", "--oneline"), ("status", "--short")):
        play.show_command(f"git {' '.join(words)}")
        for line in git(play.root, *words).splitlines():
            play.say(line, first="   │ ", style="dim")
    play.before, play.head = job.fingerprint(play.root), git(play.root, "rev-parse", "HEAD").strip()
    return [Fact(held=True, text=f"all of it, byte for byte, is called {play.before}")]


async def work_and_die(play: Play) -> Sequence[Fact]:
    if play.tier == "none":
        play.say("There is no sandbox here, so you would be asked about the checks. The demo says yes for you.")
        await play.run("trust", "--yes")
    async with play.start("run", job.REQUEST, "--yes") as process:
        ends = [asyncio.create_task(play.provider.half_done.wait()), asyncio.create_task(process.wait())]
        await asyncio.wait(ends, timeout=COMMAND_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        if not play.provider.half_done.is_set() or process.returncode is not None:
            return [Fact(held=False, text="it ended, or stood still, before its work was half done")]
        base = next(iter((await read_log(play.home)).checks), None)
        play.show_command(f"kill -9 {process.pid}")
        process.kill()
        code = await asyncio.wait_for(process.wait(), COMMAND_TIMEOUT_S)
    log = play.first = await read_log(play.home)
    counts = (base.passed, base.failing) if base else "no check ran"
    first = f"{base.check if base else 'a check'} was found and ran first: {job.PASSING} pass, 1 already fails"
    half, changed = "half done, and only in the copy: export.py is written, its test is not", play.changed(log)
    return [
        check(first, held=counts == (job.PASSING, 1), found=counts),
        check(f"process {process.pid} is dead, by signal 9", held=code == -9, found=code),
        check(f"the log has step {', '.join(log.running)} begun, and not ended", held=bool(log.running)),
        check(half, held=changed == ["export.py"], found=changed),
        play.untouched(),
    ]


async def resume(play: Play) -> Sequence[Fact]:
    first = play.first
    assert first is not None
    code, pid = await play.run("resume", "last")
    if play.tier == "none" and code == Exit.WAITING:
        play.say("There is no sandbox here, so it asks before it runs tests that it wrote. The demo says yes for you.")
        await play.run("answer", "last", "yes", "--for", "run")
        code, _ = await play.run("resume", "last")
    log = await read_log(play.home)
    owners = [event.owner for event in log.events if isinstance(event, OwnerChanged)]
    twice = [step for step, count in log.endings.items() if count != 1]
    taken_over = log.team == first.team and any(f":{pid}:" in owner for owner in owners)
    return [
        check(f"the same run {log.team}, taken over by process {pid}", held=taken_over, found=owners),
        check(f"{len(log.endings)} steps, and each ended once", held=not twice, found=twice),
        check("nothing that was done before was lost", held=first.endings.keys() <= log.endings.keys()),
        check("it ended with exit code 0: verified", held=code == 0, found=code),
    ]


async def show_verdict(play: Play) -> Sequence[Fact]:
    log = await read_log(play.home)
    tries, last = log.of("deliver"), log.checks[-1] if len(log.checks) > 1 else None
    told = str(tries[0].result) if tries else ""
    repair = next((step.step_id for step in log.of("patch") if tries and step.ended_in > tries[0].ended_in), "")
    counts = (last.passed, last.failing) if last else "no check ran"
    again = f"{last.check if last else 'the check'} ran again: {job.PASSING + 1} pass, and only the old one fails"
    tree = git(play.root, "rev-parse", f"refs/greenroom/{log.team}/main^{{tree}}").strip()
    changed, files = play.changed(log), f"{len(job.CHANGED)} files are different: {', '.join(job.CHANGED)}"
    return [
        check(f"it said “{job.TOO_SOON}”, and the checks: {job.NEW_TEST} fails", held=job.NEW_TEST in told, found=told),
        check(f"step {repair} mended export.py", held=bool(repair)),
        check(again, held=counts == (job.PASSING + 1, 1), found=counts),
        check(f"it ran on tree {tree[:10]}, and that is what you get", held=last is not None and last.tree == tree),
        check(files, held=changed == sorted(job.CHANGED), found=changed),
        play.untouched(),
    ]


async def apply(play: Play) -> Sequence[Fact]:
    await play.run("apply", "last")
    root, log = play.root, await read_log(play.home)
    lines = (root / "export.py").read_text("utf-8").splitlines()
    play.place = f"export.py:{next((at for at, line in enumerate(lines, 1) if job.MENDED in line), 1)}"
    commits = git(root, "rev-list", f"{play.head}..HEAD").split()
    author, you = git(root, "log", "-1", "--format=%an").strip(), git(root, "config", "user.name").strip()
    paths = sorted(git(root, "diff", "--name-only", play.head, "HEAD").split())
    other = git(root, "diff", "--stat", f"refs/greenroom/{log.team}/main", "HEAD", "--", *job.CHANGED)
    loose = git(root, "status", "--short").strip()
    proven, yours = "in it is what was proven, and nothing else", f"{job.UNCOMMITTED} is still yours, and in no commit"
    return [
        check(f"one commit more, in your name: {you}", held=(len(commits), author) == (1, you), found=commits),
        check(proven, held=paths == sorted(job.CHANGED) and not other, found=paths),
        check(yours, held=loose == f"?? {job.UNCOMMITTED}", found=loose),
    ]


async def undo(play: Play) -> Sequence[Fact]:
    await play.run("undo", "last")
    now, head = job.fingerprint(play.root), git(play.root, "rev-parse", "HEAD").strip()
    return [
        check(f"before {play.before}, after {now}: byte for byte", held=now == play.before),
        check(f"the last commit is {play.head[:10]} again", held=head == play.head, found=head[:10]),
    ]


SCENES: Final[Sequence[tuple[str, Callable[[Play], Awaitable[Sequence[Fact]]]]]] = (
    ("A repository: one test fails already, one file is not committed", show_repository),
    ("A job for a coder, who works in a copy of it, until its process is killed", work_and_die),
    ("Another process goes on in the same run", resume),
    ("A check failed; it was seen, and mended; what you get is what was checked", show_verdict),
    ("You take it over: one commit, in your name", apply),
    ("You take it back", undo),
)


# ---------------------------------------------------------------------------------------------------------- the whole


def demo(
    context: typer.Context,
    *,
    folder: Annotated[
        str | None,
        typer.Option("--in", metavar="FOLDER", help="Where to play; a repository that is there is taken as it stands."),
    ] = None,
    pace: Annotated[
        float,
        typer.Option(
            "--pace",
            metavar="SECONDS",
            min=0.0,
            max=60.0,
            envvar=PACE,
            show_envvar=False,
            help="How long a scripted reply takes; 0 is at once.",
        ),
    ] = WATCHABLE,
    team: Annotated[bool, typer.Option("--team", help="Watch three agents who talk and write a page instead.")] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Let that team ask you before it publishes.")] = False,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Watch a job from the request to the undo, in a small repository made for it: real commands, git, tests, a kill
    and a resume. Only the model is scripted. The folder stays. Exit code 1 when a line of the story does not hold."""
    os.environ[PACE] = str(pace)
    if team and folder:
        raise typer.BadParameter("The team of --team works in its home. Leave --in out.")
    if team:
        options = RunOptions(record=record, replay=replay)
        return invoke(context, lambda cli: play_team(cli, options, ask=ask), access="make")
    if ask or record or replay:
        raise typer.BadParameter("--ask, --record and --replay are for the team of the demo. Add --team.")
    return invoke(context, lambda cli: play_job(cli, Path(folder).absolute() if folder else None))


async def play_team(cli: Invocation, options: RunOptions, *, ask: bool) -> Exit:
    """Three scripted agents talk and work, for a look around in a team. A turn that the script does not cover is a
    failure, whatever the others made of it."""
    cli.means.use_recording(options.record, options.replay)
    cli.progress.note(TEAM_LINE, style="bold")
    agents, kit = ((*AGENTS, PERSON), ASKING_KIT) if ask else (AGENTS, KIT)
    team = await cli.runtime.create("demo", agents, kit=kit, begin=(TASK,))
    cli.out.begin(team=team, scripted=True)
    ending = await follow(cli, team, TeamHistory())
    missed = [failure for failure in ending.history.failures if MISSING_CUE in failure]
    return report_ending(cli, team, evolve(ending, fault=missed[0]) if missed else ending, name="last")


async def play_job(cli: Invocation, chosen: Path | None) -> Exit:
    """Make the repository, play the scenes in it, and say what held."""
    if cli.setup.home is not None:
        why = "The demo has a home of its own, beside the repository that it makes."
        raise refused("own_home", why, "Leave --home out; --in FOLDER says where both are.")
    folder = chosen or Path(tempfile.mkdtemp(prefix="greenroom-demo-"))
    play, began = Play(cli, folder, demo_pace()), time.monotonic()
    server = await asyncio.start_server(play.provider.answer, "127.0.0.1", 0)
    try:
        play.say(FIRST_LINE, first="", style="bold")
        play.set_up(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        cli.out.begin(scripted=True, folder=str(folder), home=str(play.home), sandbox=play.tier)
        play.say(f"It happens in {folder}, which stays. Sandbox: {play.tier}.", first="")
        wrong = await play_scenes(play)
    except asyncio.CancelledError:
        play.say(f"Stopped; nothing of it runs any more. {folder} stays as it is.", first="", style="bold")
        raise
    finally:
        server.close()
    return await report(play, wrong, round((time.monotonic() - began) * 1000))


async def play_scenes(play: Play) -> Sequence[str]:
    """Play all scenes, or those up to the first that does not hold: then that one, and what is wrong."""
    for number, (title, scene) in enumerate(SCENES, start=1):
        play.typed.clear()
        play.say("")
        play.say(title, first=f"{number:<3}", style="bold")
        try:
            facts = await scene(play)
        except (GreenroomError, OSError) as error:  # TimeoutError is an OSError
            facts = [Fact(held=False, text=str(error) or "it took too long")]
        for fact in facts:
            mark, style = ("✓", "green") if fact.held else ("✗", "bold red")
            play.say(fact.text, first=f"   {mark} ", style=style)
        wrong = [f"  {fact.text}" for fact in facts if not fact.held]
        told = {"commands": [*play.typed], "held": not wrong, "facts": [fact._asdict() for fact in facts]}
        play.cli.out.item("line", {"number": number, "title": title, **told})
        if wrong:
            return [f"✗ The story did not hold, in line {number} of {len(SCENES)}: {title}.", *wrong]
        await asyncio.sleep(play.pace)
    return []


async def report(play: Play, wrong: Sequence[str], whole: int) -> Exit:
    """Print how it ended, and what to type to look at it, on stdout."""
    checks, waits = 0, round(play.pace * len(SCENES) * 1000)
    with suppress(GreenroomError, OSError):
        log = await read_log(play.home)
        checks = sum(step.spent.millis for step in log.of("baseline", "deliver", "run_checks"))
        waits += sum(step.spent.millis for step in log.steps if step.work.type == "skill")
    millis = {"whole": whole, "checks": checks, "waits": waits, "rest": max(whole - checks - waits, 0)}
    ends = wrong or [f"✓ The story held: {len(SCENES)} lines, looked up in files, git and the log."]
    took = f"  It took {whole / 1000:.1f} s, {millis['rest'] / 1000:.1f} s of them without checks, replies and pauses."
    look = [*commands_to_type(play)]
    out = play.cli.out
    out.write("\n".join((*ends, took, "", "Look for yourself:", *(f"  {line}" for line in look))) + "\n")
    status, code = ("failed", Exit.FAILED) if wrong else ("finished", Exit.DONE)
    error = " ".join(line.strip() for line in wrong)
    return out.result(status, code, folder=str(play.folder), sandbox=play.tier, error=error, millis=millis, look=look)


def commands_to_type(play: Play) -> Iterator[str]:
    """What to type to look at all of it."""
    yield f"cd {shlex.quote(str(play.root))}"
    yield from (f"export {name}={shlex.quote(value)}" for name, value in play.own.items())
    if "GREENROOM_CALLED_AS" in os.environ or not shutil.which("greenroom"):
        yield f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"'
    yield "git log --oneline --all        # a commit for each step"
    yield "greenroom show last            # who did what"
    yield "greenroom diff last            # the change"
    yield "greenroom replay last          # every moment of it"
    if play.place:
        yield "greenroom apply last           # take it over once more; `undo last` takes it back"
        yield f"greenroom blame {play.place:<15}# then: who wrote that line"
