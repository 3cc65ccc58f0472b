"""The demo, as a newcomer types it: a story that holds, line by line, and one that does not; and its team."""

import asyncio
import contextlib
import io
import json
import logging
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import psutil
import pytest

from greenroom.app.messages import translate
from greenroom.cli.app import run
from greenroom.cli.commands.demo import SCENES, TEAM_SCENES
from greenroom.testing import demo_run
from greenroom.testing.demo_team import find_role
from tests.e2e.terminal import PATIENCE, Ended, Running, environment, greenroom
from tests.e2e.typing import Typing
from tests.tiers import has_bubblewrap, keep_known

ROOT = Path(__file__).resolve().parents[2]
NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""A git that does not know who sits there."""

WALLED = {"GREENROOM_SANDBOX": "auto"}
LOGGER = logging.getLogger("greenroom")


def played(folder: Path, *words: str, **more: str) -> Ended:
    """The demo in this process, so that it is measured; its commands are processes of their own, and are not."""
    out, err = io.StringIO(), io.StringIO()
    keep_known(folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("handlers", "level", "propagate"):  # a command takes the logger over
            patch.setattr(LOGGER, name, getattr(LOGGER, name))
        for name, value in environment(folder / "nobodys", **{**WALLED, **NOBODY, **more}).items():
            patch.setenv(name, value)
        patch.setenv("GREENROOM_DEMO_PACE", "0")
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(("demo", "--pace", "0", "--in", str(folder), *words))
    return Ended(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module", name="held")
def _held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, played(folder, "--output-format", "json")


def test_the_story_holds_from_the_repository_to_the_undo(held: tuple[Path, Ended]) -> None:
    _, ended = held
    assert ended.code == 0, ended.err
    assert ended.json["status"] == "finished"
    lines = ended.json["lines"]
    assert isinstance(lines, list)
    assert [one["title"] for one in lines] == [translate(key) for key, _ in SCENES]
    assert all(one["held"] and one["facts"] for one in lines)


def test_the_story_of_a_team_holds_and_takes_less_than_a_minute(tmp_path: Path) -> None:
    ended = played(tmp_path, "--team", "--output-format", "json")
    assert ended.code == 0, ended.err
    lines = ended.json["lines"]
    assert isinstance(lines, list)
    assert [one["title"] for one in lines] == [translate(key) for key, _ in TEAM_SCENES]
    assert all(one["held"] and one["facts"] for one in lines)
    assert "kill -9" in str(lines[1]["commands"])
    millis = ended.json["millis"]
    assert isinstance(millis, dict)
    assert millis["whole"] < 60_000


@pytest.mark.prove
def test_on_a_terminal_the_team_draws_its_table_before_and_after_the_kill(tmp_path: Path) -> None:
    more = {**WALLED, **NOBODY, "GREENROOM_LANGUAGE": "zh"}
    keep_known(tmp_path / "demo" / "cache")
    words = ("demo", "--team", "--pace", "0", "--in", str(tmp_path / "demo"))
    with Typing(tmp_path / "home", *words, columns="80", **more) as terminal:
        terminal.until("[阶段 1/5]")
        terminal.until("$ kill -9")
        terminal.until("$ greenroom resume last")
        terminal.until("[阶段 ")
        terminal.until("│ 已应用：")
        assert terminal.ends() == 0
    assert terminal.raw.rindex(b"\x1b[?25h") > terminal.raw.rindex(b"\x1b[?25l"), "the cursor is visible again"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_script_knows_each_specialist_in_both_languages(language: str) -> None:
    prompts = ROOT / "src" / "greenroom" / "abilities" / "skills" / "prompts"
    prompt = (prompts / language / "role.md").read_text("utf-8").replace("{{ name }}", "code-writer")
    assert find_role(prompt) == "code-writer"
    assert find_role(f"{prompt}\nWrite only: to_xml.py") == "to_xml.py"


def plain(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, word in (
        (r"\b[0-9a-f]{7,40}\b", "HASH"),
        (r"/tmp/\S+", "FOLDER"),
        (r"\b(run|undo|apply|show|resume|events|diff|discard) [a-z0-9]{8}\b", r"\1 ID"),
        (r"\d[\d,.]*", "N"),
        (r"in your name: .*", "in your name: YOU"),
        (r"(process|kill -9) \d+", r"\1 N"),
        (r"tree [0-9a-f]{10}", "tree T"),
    ):
        text = re.sub(pattern, word, text)
    return text


CUT = 50
"""Characters of a line that are compared: the picture cuts long lines."""


@pytest.mark.skipif(not has_bubblewrap(), reason="the picture was drawn with bubblewrap")
def test_the_picture_of_the_readme_shows_what_it_tells(held: tuple[Path, Ended]) -> None:
    assert "docs/demo.svg" in (ROOT / "README.md").read_text("utf-8")
    drawn = ET.parse(ROOT / "docs" / "demo.svg").iter("{http://www.w3.org/2000/svg}text")
    shown = [line.text for line in drawn if line.text and line.text.startswith(("   ", "1", "2", "3", "4", "5", "6"))]
    told = {line[:CUT] for line in plain(held[1].err).splitlines()}
    assert len(shown) > 50
    assert [line for line in shown if plain(line)[:CUT] not in told] == []


def test_it_is_a_real_repository_whose_person_git_need_not_know(held: tuple[Path, Ended]) -> None:
    root = held[0] / "shop"
    assert demo_run.git(root, "log", "--format=%an %s").splitlines() == ["You The shop"]
    assert demo_run.git(root, "status", "--short") == f"?? {demo_run.UNCOMMITTED}\n"


@pytest.mark.prove
def test_what_it_says_to_type_works_when_it_is_pasted(held: tuple[Path, Ended]) -> None:
    typed = held[1].json["look"]
    assert isinstance(typed, list)
    assert any("greenroom blame export.py:" in one for one in typed)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("GREENROOM", "XDG", "COV"))}
    script_ = "\n".join(("set -e", *typed, "greenroom undo last"))
    done = subprocess.run(
        ["sh", "-c", script_], env=plain, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert demo_run.MENDED_LINE in done.stdout
    assert "Undone: " in done.stdout


# -------------------------------------------------------------------------------------------------- what does not hold


def test_a_home_that_it_would_not_use_is_refused_and_the_other_way_is_named(tmp_path: Path) -> None:
    for words in (("--home", str(tmp_path / "mine"), "demo"), ("demo", "--home", str(tmp_path / "mine"))):
        ended = greenroom(tmp_path, *words)
        assert (ended.code, ended.out) == (2, "")
        assert "The demo has its own home" in ended.err
        assert "--in FOLDER" in ended.err
    assert not (tmp_path / "mine").exists()


BROKEN = """
from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.base.errors import WorldFault
async def commit(self, applied, message, **more):
    raise WorldFault("No commit today.")
GitWorkspace.commit = commit
"""


@pytest.mark.prove
def test_a_part_of_greenroom_that_is_broken_ends_it_as_failed_and_says_in_which_line(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sitecustomize.py").write_text(BROKEN)
    ended = played(tmp_path / "demo", "--output-format", "json", PYTHONPATH=str(tmp_path / "broken"))
    assert (ended.code, ended.json["status"]) == (1, "failed")
    assert f"The story did not hold, in line 5 of {len(SCENES)}" in str(ended.json["error"])
    lines = ended.json["lines"]
    assert isinstance(lines, list)
    assert [line["held"] for line in lines] == [True] * 4 + [False]
    assert "Traceback" not in ended.err


# ------------------------------------------------------------------------------------------------------ other machines


@pytest.mark.prove
def test_without_walls_it_says_so_and_what_a_person_would_be_asked(tmp_path: Path) -> None:
    ended = played(tmp_path / "demo", GREENROOM_SANDBOX="off")
    assert ended.code == 0, ended.err
    assert "$ greenroom trust --yes" in ended.err
    assert "$ greenroom answer last yes --for run" in ended.err


# ------------------------------------------------------------------------------------------------------------- stopping


def around(folder: Path) -> Iterator[psutil.Process]:
    """The processes that have something to do with this folder."""
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if one.pid != os.getpid() and str(folder) in " ".join((*one.cmdline(), *one.environ().values(), one.cwd())):
                yield one


@pytest.mark.prove
def test_ctrl_c_leaves_nothing_running_and_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with Running(tmp_path / "home", "demo", "--pace", "5", "--in", str(folder), **WALLED) as running:
        running.until("│ Checks:")  # they run now
        assert list(around(folder))
        running.send(signal.SIGINT)
        ended = running.end()
    assert ended.code == 130
    assert "Stopped; all its processes have ended." in ended.err
    assert list(around(folder)) == []
    assert demo_run.git(folder / "shop", "status", "--short") == f"?? {demo_run.UNCOMMITTED}\n"


async def ask_and_leave() -> None:
    script = demo_run.ScriptedProvider(0)
    server = await asyncio.start_server(script.answer, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    body = json.dumps({"messages": [{"role": "assistant"}] * demo_run.KILLED_AT_TURN})
    writer.write(f"POST / HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
    await asyncio.wait_for(script.half_done.wait(), PATIENCE)
    writer.close()
    server.close()  # the reply is cancelled before its end of file is read


def test_a_demo_that_is_stopped_during_a_reply_prints_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(ask_and_leave())
    assert caplog.records == []


GUIDE = "# Tea\n"


def test_the_demo_gives_its_answer_on_stdout_and_its_story_on_stderr(ran_once: tuple[Path, Ended]) -> None:
    _, ended = ran_once
    assert ended.code == 0
    assert ended.out.startswith(GUIDE)
    assert "Green tea: 80 degrees" in ended.out
    assert "ben    → maya: Who reads it" in ended.err
    assert "maya   → ben: New to it." in ended.err
    assert "✎ on the board: House style" in ended.err
    assert "Green tea: 80 degrees" not in ended.err


def test_a_stream_begins_with_init_ends_with_result_and_holds_every_event_between(tmp_path: Path) -> None:
    ended = greenroom(tmp_path, "demo", "--org", "--pace", "0", "--output-format", "stream-json")
    first, *events, last = ended.lines
    assert (first["type"], first["schema_version"], first["scripted"]) == ("init", 1, True)
    assert (last["type"], last["status"], last["exit_code"]) == ("result", "finished", 0)
    assert [event["version"] for event in events] == list(range(1, len(events) + 1))
    assert {event["team"] for event in events} == {first["team"]}
    assert ended.err == ""
