"""`greenroom demo`: a run from the request to the undo, played by real commands in a real repository.

Only the model is scripted, and served on this machine. After each scene, facts are checked in the files, in git and in
the log. The first fact that is false ends the demo with exit code 1.
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
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import typer
from platformdirs import user_cache_path

from greenroom.app.messages import translate
from greenroom.app.settings.home import HOME_VARIABLE
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.toolset.sandbox import TIER_CACHE_FILE, SandboxMode, find_folder_sandbox
from greenroom.cli.context import Invocation, invoke
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.follow import follow
from greenroom.cli.interactive.report import report_ending
from greenroom.cli.options import Record, Replay, RunOptions
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.progress import RowProgress
from greenroom.cli.render.team import TeamHistory
from greenroom.core.base.errors import GreenroomError, WorldFault, make_refusal
from greenroom.core.base.records import Data, evolve
from greenroom.core.state.team import OwnerChanged
from greenroom.testing import demo_run as job
from greenroom.testing import demo_team as team_job
from greenroom.testing.demo import AGENTS, ASKING_KIT, DEFAULT_PACE_S, DEMO_KIT, PACE_VARIABLE, PERSON, TASK, demo_pace
from greenroom.testing.demo_run import DemoLog, ScriptedProvider, git, read_log
from greenroom.testing.demo_team import TeamProvider

MISSING_CUE: Final = "The script has no reply"
SETTINGS: Final = """\
# The model of the demo: a script, served on this machine while the demo ran.
model = "scripted:coder"
language = "{language}"

[providers.scripted]
base_url = "{address}"

[prices."scripted:coder"]
input = 0
output = 0

[team]
accept_model_merges = true
"""
COMMAND_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 10.0
MAX_LINE_BYTES: Final = 1 << 20
SHOW_CURSOR: Final = "\x1b[?25h"  # a killed process leaves it hidden


class Fact(NamedTuple):
    """A statement that was checked, and whether it is true."""

    held: bool
    text: str


def make_fact(text: str, *, held: bool, found: object = "") -> Fact:
    """Make a fact; a false one says what was found."""
    return Fact(held, text if held else translate("demo.false", text=text, found=found or translate("hints.none")))


# ------------------------------------------------------------------------------------------------------- the commands


class DemoPlay:
    """The running demo: its folder, its processes, and what is known so far."""

    def __init__(self, cli: Invocation, folder: Path, pace: float, *, is_team: bool) -> None:
        self.cli, self.folder, self.pace = cli, folder, pace
        self.root, self.home = folder / "shop", folder / "home"
        self.story, self.scenes = (team_job.STORY, TEAM_SCENES) if is_team else (job.STORY, SCENES)
        self.has_table = is_team and isinstance(cli.progress, RowProgress)
        self.typed_commands: list[str] = []
        self.fingerprint = self.head = self.blamed_line = ""
        self.log_before_kill: DemoLog | None = None
        mode: SandboxMode = "off" if os.environ.get("GREENROOM_SANDBOX") == "off" else "auto"
        self.tier = find_folder_sandbox(folder / "cache", SandboxSettings(walls=mode), at=folder / "shop").tier
        checked = self.tier != "none"
        self.provider = TeamProvider(pace, self.root, checked=checked) if is_team else ScriptedProvider(pace)
        own_variables = {HOME_VARIABLE: "home", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
        self.own_environment = {name: str(folder / part) for name, part in own_variables.items()}
        self.environment = {**job.command_environment(), **self.own_environment, "GREENROOM_SANDBOX": mode}

    def set_up(self, address: str) -> None:
        """Write the settings and make the repository. The result of the sandbox probe is copied, so that it is not
        repeated."""
        config, cache = self.folder / "config" / "greenroom", self.folder / "cache" / "greenroom"
        for created_folder in (config, cache):
            created_folder.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(
            SETTINGS.format(address=address, language=self.cli.app.language), encoding="utf-8"
        )
        tier_cache = user_cache_path("greenroom", appauthor=False) / TIER_CACHE_FILE
        if tier_cache.is_file():
            shutil.copy(tier_cache, cache / TIER_CACHE_FILE)
        job.make_repository(self.root)

    def say(self, text: str, first: str = "   ", style: str = "") -> None:
        self.cli.progress.note(f"{first}{text}".rstrip(), style=style)

    def show_command(self, text: str) -> None:
        """Print a command as a person would type it."""
        self.typed_commands.append(text)
        self.say(f"$ {text}", style="cyan")

    @asynccontextmanager
    async def start(self, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run a command in the repository. The process has ended when the block ends.

        On a terminal, a team draws its table there.
        """
        self.show_command(f"greenroom {shlex.join(words)}")
        is_drawn = self.has_table and words[0] in ("run", "resume")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "greenroom.cli", *words),
            cwd=self.root,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if is_drawn else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=MAX_LINE_BYTES,
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
        if process.stdout is None:
            return
        async for data in process.stdout:
            if line := data.decode(errors="replace").rstrip():
                self.say(strip_control_characters(line), first="   │ ", style="dim")

    async def run(self, *words: str) -> tuple[int, int]:
        """Run a command to its end; return its exit code and process id."""
        async with self.start(*words) as process:
            code = await asyncio.wait_for(process.wait(), COMMAND_TIMEOUT_S)
        return code, process.pid

    def check_untouched(self) -> Fact:
        """Check that the person's files are unchanged."""
        now = job.fingerprint(self.root)
        return make_fact(
            translate("demo.files_unchanged", fingerprint=self.fingerprint), held=now == self.fingerprint, found=now
        )

    def list_changed(self, log: DemoLog) -> Sequence[str]:
        """Return the files that the run has changed so far, by its commits."""
        refs = (f"refs/greenroom/{log.team}/@base", f"refs/greenroom/{log.team}/main")
        try:
            return sorted(git(self.root, "diff", "--name-only", *refs).split())
        except WorldFault:
            return ()  # there is no such commit: nothing was changed


# --------------------------------------------------------------------------------------------------------- the scenes


async def show_repository(play: DemoPlay) -> Sequence[Fact]:
    for words in (("log", "--oneline"), ("status", "--short")):
        play.show_command(f"git {' '.join(words)}")
        for line in git(play.root, *words).splitlines():
            play.say(line, first="   │ ", style="dim")
    play.fingerprint, play.head = job.fingerprint(play.root), git(play.root, "rev-parse", "HEAD").strip()
    return [Fact(held=True, text=translate("demo.fingerprint", fingerprint=play.fingerprint))]


async def work_and_die(play: DemoPlay) -> Sequence[Fact]:
    """Run the story's command, and kill it when its work is half done."""
    if play.tier == "none":
        play.say(translate("demo.approve_checks"))
        await play.run("trust", "--yes")
    async with play.start(*play.story.words) as process:
        ends = [asyncio.create_task(play.provider.half_done.wait()), asyncio.create_task(process.wait())]
        await asyncio.wait(ends, timeout=COMMAND_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        if not play.provider.half_done.is_set() or process.returncode is not None:
            return [Fact(held=False, text=translate("demo.ended_early"))]
        await asyncio.sleep(play.pace)  # for the person to look at it
        if play.has_table:
            typer.echo(SHOW_CURSOR, err=True)
        play.show_command(f"kill -9 {process.pid}")
        process.kill()
        code = await asyncio.wait_for(process.wait(), COMMAND_TIMEOUT_S)
    log = play.log_before_kill = await read_log(play.home)
    running = translate("demo.step_running", steps=", ".join(log.running))
    return [
        *(_check_writers(log) if play.story is team_job.STORY else _check_half(play, log)),
        make_fact(translate("demo.killed", pid=process.pid), held=code == -9, found=code),
        make_fact(running, held=bool(log.running)),
        play.check_untouched(),
    ]


def _check_half(play: DemoPlay, log: DemoLog) -> Sequence[Fact]:
    """Check that the baseline ran, and that the code is written."""
    base, changed = next(iter(log.checks), None), play.list_changed(log)
    counts = (base.passed, base.failing) if base else "no check ran"
    first = translate("demo.first_check_ran", check=base.check if base else "?", passing_tests=job.PASSING_TESTS)
    return [
        make_fact(first, held=counts == (job.PASSING_TESTS, 1), found=counts),
        make_fact(translate("demo.half_done"), held=changed == ["export.py"], found=changed),
    ]


def _check_writers(log: DemoLog) -> Sequence[Fact]:
    """Check that both code-writers were at work."""
    running = [subtask.name for subtask in log.subtasks if subtask.state == "running"]
    both = translate("demo.writers_running", files=", ".join(team_job.WRITERS))
    return [make_fact(both, held={"code-1", "code-2"} <= {*running}, found=running)]


async def resume(play: DemoPlay) -> Sequence[Fact]:
    first = play.log_before_kill
    assert first is not None
    code, pid = await play.run("resume", "last")
    if play.tier == "none" and code == Exit.WAITING:
        play.say(translate("demo.approve_tests"))
        await play.run("answer", "last", "yes", "--for", "run")
        code, _ = await play.run("resume", "last")
    log = await read_log(play.home)
    owners = [event.owner for event in log.events if isinstance(event, OwnerChanged)]
    twice = [step for step, count in log.endings.items() if count != 1]
    taken_over = log.team == first.team and any(f":{pid}:" in owner for owner in owners)
    return [
        make_fact(translate("demo.same_run", team=log.team, pid=pid), held=taken_over, found=owners),
        make_fact(translate("demo.steps_ended_once", count=len(log.endings)), held=not twice, found=twice),
        make_fact(translate("demo.none_lost"), held=first.endings.keys() <= log.endings.keys()),
        make_fact(translate("demo.ended_verified"), held=code == 0, found=code),
    ]


async def show_verdict(play: DemoPlay) -> Sequence[Fact]:
    log = await read_log(play.home)
    tries = log.steps_of("deliver")
    delivery_result = str(tries[0].result) if tries else ""
    repair = next((step.step_id for step in log.steps_of("patch") if tries and step.ended_in > tries[0].ended_in), "")
    return [
        make_fact(
            translate("demo.said_done", summary=job.EARLY_SUMMARY, test=job.NEW_TEST),
            held=job.NEW_TEST in delivery_result,
            found=delivery_result,
        ),
        make_fact(translate("demo.fixed", step=repair), held=bool(repair)),
        *_check_change(play, log, job.PASSING_TESTS + 1),
    ]


def _check_change(play: DemoPlay, log: DemoLog, passing: int) -> Sequence[Fact]:
    """Check that the last check ran on what the person gets, and which files that changes."""
    last, files = log.checks[-1] if len(log.checks) > 1 else None, play.story.files
    counts = (last.passed, last.failing) if last else "no check ran"
    again = translate("demo.check_ran_again", check=last.check if last else "?", passing_tests=passing)
    tree = git(play.root, "rev-parse", f"refs/greenroom/{log.team}/main^{{tree}}").strip()
    changed, text = play.list_changed(log), translate("demo.files_changed", count=len(files), files=", ".join(files))
    return [
        make_fact(again, held=counts == (passing, 1), found=counts),
        make_fact(translate("demo.ran_on_tree", tree=tree[:10]), held=last is not None and last.tree == tree),
        make_fact(text, held=changed == sorted(files), found=changed),
        play.check_untouched(),
    ]


async def show_team_verdict(play: DemoPlay) -> Sequence[Fact]:
    log = await read_log(play.home)
    ends = {subtask.name: subtask.state for subtask in log.subtasks}
    kinds = {subtask.agent.rpartition("-")[0] for subtask in log.subtasks}
    merges = git(play.root, "log", "--first-parent", "--merges", "--format=%s", f"refs/greenroom/{log.team}/main")
    names = team_job.SPECIALISTS
    finished = translate("demo.team_finished", count=len(names), names=", ".join(names))
    merged = translate("demo.merged", count=play.story.commits)
    return [
        make_fact(finished, held={*ends.values()} == {"finished"} and {*names} <= kinds, found=ends),
        *_check_merges(log, checked=play.tier != "none"),
        make_fact(merged, held=len(merges.splitlines()) == play.story.commits, found=merges),
        *_check_change(play, log, job.PASSING_TESTS + team_job.NEW_TESTS),
    ]


def _check_merges(log: DemoLog, *, checked: bool) -> Sequence[Fact]:
    """Check how the conflicts were merged, and what went back. Without a sandbox, merges run no checks."""
    results = [step.result or {} for step in log.steps_of("merge")]
    found = {(str(row["rung"]), str(row["path"])) for result in results for row in _read_rows(result, "conflicts")}
    broken = [test for result in results for _, test in _read_rows(result, "failures")]
    names = {subtask.name for subtask in log.subtasks}
    facts = {
        translate("demo.by_structure"): ("structure", "README.md") in found,
        translate("demo.by_model"): ("model", "export.py") in found,
        translate("demo.by_author"): ("author", "to_xml.py") in found,
        translate("demo.review_sent_back"): {"fix-1", "review-2"} <= names,
    }
    if checked:
        facts[translate("demo.test_sent_back")] = any(team_job.BROKEN_TEST in test for test in broken)
    return [make_fact(text, held=held, found=sorted(found)) for text, held in facts.items()]


def _read_rows(result: Data, key: str) -> Sequence[Any]:
    rows = result.get(key)
    return rows if isinstance(rows, list) else []


async def show_team_report(play: DemoPlay) -> Sequence[Fact]:
    code, _ = await play.run("report", "last")
    return [make_fact(translate("demo.reported"), held=code == 0, found=code), play.check_untouched()]


async def apply(play: DemoPlay) -> Sequence[Fact]:
    await play.run("apply", "last")
    root, log, (file, text), files = play.root, await read_log(play.home), play.story.line, play.story.files
    lines = (root / file).read_text("utf-8").splitlines()
    play.blamed_line = f"{file}:{next((at for at, line in enumerate(lines, 1) if text in line), 1)}"
    commits, authors = (
        git(root, "log", f"--format={name}", f"{play.head}..HEAD").splitlines() for name in ("%s", "%an")
    )
    you = git(root, "config", "user.name").strip()
    paths = sorted(git(root, "diff", "--name-only", play.head, "HEAD").split())
    other = git(root, "diff", "--stat", f"refs/greenroom/{log.team}/main", "HEAD", "--", *files)
    uncommitted = git(root, "status", "--short").strip()
    count = play.story.commits
    made = translate("demo.one_commit" if count == 1 else "demo.commits", you=you, count=count)
    yours_text = translate("demo.still_uncommitted", uncommitted=job.UNCOMMITTED)
    return [
        make_fact(made, held=authors == [you] * count, found=commits),
        make_fact(translate("demo.only_verified"), held=paths == sorted(files) and not other, found=paths),
        make_fact(yours_text, held=uncommitted == f"?? {job.UNCOMMITTED}", found=uncommitted),
    ]


async def undo(play: DemoPlay) -> Sequence[Fact]:
    await play.run("undo", "last")
    now, head = job.fingerprint(play.root), git(play.root, "rev-parse", "HEAD").strip()
    return [
        make_fact(translate("demo.byte_for_byte", before=play.fingerprint, after=now), held=now == play.fingerprint),
        make_fact(translate("demo.commit_again", commit=play.head[:10]), held=head == play.head, found=head[:10]),
    ]


Scene: TypeAlias = tuple[str, Callable[[DemoPlay], Awaitable[Sequence[Fact]]]]
SCENES: Final[Sequence[Scene]] = (
    ("demo.scene_repository", show_repository),
    ("demo.scene_work", work_and_die),
    ("demo.scene_resume", resume),
    ("demo.scene_verdict", show_verdict),
    ("demo.scene_apply", apply),
    ("demo.scene_undo", undo),
)
TEAM_SCENES: Final[Sequence[Scene]] = (
    SCENES[0],
    ("demo.scene_team", work_and_die),
    SCENES[2],
    ("demo.scene_team_verdict", show_team_verdict),
    ("demo.scene_team_report", show_team_report),
    ("demo.scene_team_apply", apply),
    SCENES[5],
)


# ---------------------------------------------------------------------------------------------------------- the whole


def demo(
    context: typer.Context,
    *,
    folder: Annotated[
        str | None,
        typer.Option("--in", metavar="FOLDER", help="Folder; an existing repository is used as it is."),
    ] = None,
    pace: Annotated[
        float,
        typer.Option(
            "--pace",
            metavar="SECONDS",
            min=0.0,
            max=60.0,
            envvar=PACE_VARIABLE,
            show_envvar=False,
            help="Time of a scripted reply.",
        ),
    ] = DEFAULT_PACE_S,
    team: Annotated[bool, typer.Option("--team", help="Watch a team of five specialists instead.")] = False,
    org: Annotated[bool, typer.Option("--org", help="Watch three agents write a page instead.")] = False,
    ask: Annotated[bool, typer.Option("--ask", help="With --org: ask you before it publishes.")] = False,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Watch a run from request to undo; needs no key.

    It makes a small repository and works in it with real commands: git, tests, a kill and a resume. Only the model is
    scripted. The folder is kept.

    Examples:
      greenroom demo
      greenroom demo --in /tmp/demo --pace 0
      greenroom demo --team
      greenroom demo --org --ask

    Exit codes: 0; 1 a fact of the demo is false; 2; 3; 6 with --org --ask, waiting for your answer.
    """
    os.environ[PACE_VARIABLE] = str(pace)
    if org and (folder or team):
        raise typer.BadParameter(translate("demo.org_alone"))
    if org:
        options = RunOptions(record=record, replay=replay)
        return invoke(context, lambda cli: play_organisation(cli, options, ask=ask), access="make")
    if ask or record or replay:
        raise typer.BadParameter(translate("demo.options_need_org"))
    return invoke(context, lambda cli: play_run(cli, Path(folder).absolute() if folder else None, is_team=team))


async def play_organisation(cli: Invocation, options: RunOptions, *, ask: bool) -> Exit:
    """Run a team of three scripted agents. A turn that the script does not cover is a failure."""
    cli.app.use_recording(options.record, options.replay)
    cli.progress.note(translate("demo.introduction_org"), style="bold")
    agents, kit = ((*AGENTS, PERSON), ASKING_KIT) if ask else (AGENTS, DEMO_KIT)
    team = await cli.runtime.create("demo", agents, capabilities_name=kit, first_intents=(TASK,))
    cli.out.begin(team=team, scripted=True)
    ending = await follow(cli, team, TeamHistory())
    missed = [failure for failure in ending.history.failures if MISSING_CUE in failure]
    return report_ending(cli, team, evolve(ending, fault=missed[0]) if missed else ending)


async def play_run(cli: Invocation, chosen: Path | None, *, is_team: bool) -> Exit:
    """Make the repository, play the scenes, and report the result."""
    if cli.setup.home is not None:
        raise make_refusal("own_home", translate("demo.own_home"), translate("demo.use_in_folder"))
    folder = chosen or Path(tempfile.mkdtemp(prefix="greenroom-demo-"))
    play, began = DemoPlay(cli, folder, demo_pace(), is_team=is_team), time.monotonic()
    server = await asyncio.start_server(play.provider.answer, "127.0.0.1", 0)
    try:
        play.say(translate("demo.introduction"), first="", style="bold")
        play.set_up(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        cli.out.begin(scripted=True, folder=str(folder), home=str(play.home), sandbox=play.tier)
        play.say(translate("demo.folder", folder=folder, tier=play.tier), first="")
        wrong = await play_scenes(play)
    except asyncio.CancelledError:
        play.say(translate("demo.stopped", folder=folder), first="", style="bold")
        raise
    finally:
        server.close()
    return await report_demo(play, wrong, round((time.monotonic() - began) * 1000))


async def play_scenes(play: DemoPlay) -> Sequence[str]:
    """Play the scenes up to the first one with a false fact; return that scene and its false facts."""
    for number, (key, scene) in enumerate(play.scenes, start=1):
        title = translate(key)
        play.typed_commands.clear()
        play.say("")
        play.say(title, first=f"{number:<3}", style="bold")
        try:
            facts = await scene(play)
        except (GreenroomError, OSError) as error:  # TimeoutError is an OSError
            facts = [Fact(held=False, text=str(error) or translate("demo.too_long"))]
        for fact in facts:
            mark, style = ("✓", "green") if fact.held else ("✗", "bold red")
            play.say(fact.text, first=f"   {mark} ", style=style)
        wrong = [f"  {fact.text}" for fact in facts if not fact.held]
        scene_fields = {
            "commands": [*play.typed_commands],
            "held": not wrong,
            "facts": [fact._asdict() for fact in facts],
        }
        play.cli.out.item("line", {"number": number, "title": title, **scene_fields})
        if wrong:
            return [translate("demo.demo_failed", number=number, count=len(play.scenes), title=title), *wrong]
        await asyncio.sleep(play.pace)
    return []


async def report_demo(play: DemoPlay, wrong: Sequence[str], whole: int) -> Exit:
    """Print the result on stdout, and the commands to look at it."""
    checks, waits, run = 0, round(play.pace * len(play.scenes) * 1000), "last"
    with suppress(GreenroomError, OSError):
        log = await read_log(play.home)
        run = str(log.team)
        checks = sum(step.spent.millis for step in log.steps_of("baseline", "deliver", "run_checks"))
        waits += sum(step.spent.millis for step in log.steps if step.work.type == "skill")
    millis = {"whole": whole, "checks": checks, "waits": waits, "rest": max(whole - checks - waits, 0)}
    ends = wrong or [translate("demo.demo_passed", count=len(play.scenes))]
    took = translate("demo.time_taken", whole=whole / 1000, millis=millis["rest"] / 1000)
    commands_shown = [*commands_to_type(play, run)]
    out = play.cli.out
    out.write("\n".join((*ends, took, "", translate("demo.look"), *(f"  {line}" for line in commands_shown))) + "\n")
    status, code = ("failed", Exit.FAILED) if wrong else ("finished", Exit.DONE)
    error = " ".join(line.strip() for line in wrong)
    return out.result(
        status, code, folder=str(play.folder), sandbox=play.tier, error=error, millis=millis, look=commands_shown
    )


def commands_to_type(play: DemoPlay, run: str) -> Iterator[str]:
    """Yield the commands to look at the demo and its run."""
    yield f"cd {shlex.quote(str(play.root))}"
    yield from (f"export {name}={shlex.quote(value)}" for name, value in play.own_environment.items())
    if "GREENROOM_CALLED_AS" in os.environ or not shutil.which("greenroom"):
        yield f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"'
    yield f"git log --oneline --all        # {translate('demo.look_log')}"
    yield f"{f'greenroom show {run}':<30} # {translate('demo.look_show')}"
    yield f"{f'greenroom diff {run}':<30} # {translate('demo.look_diff')}"
    yield f"{f'greenroom replay {run}':<30} # {translate('demo.look_replay')}"
    if play.blamed_line:
        yield f"{f'greenroom apply {run}':<30} # {translate('demo.look_apply')}"
        yield f"greenroom blame {play.blamed_line:<15}# {translate('demo.look_blame')}"
