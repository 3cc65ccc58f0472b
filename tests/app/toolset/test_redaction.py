"""Keys that the house knows are in nothing that a tool says: not in the log, not on a screen, not in a prompt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.settings.schema import ProviderSettings
from greenroom.app.settings.values import Secret
from greenroom.app.toolset.redaction import MASK, SecretRedactor, contains_mask, find_known_secrets, remove_secrets
from greenroom.app.toolset.toolbox import ToolSource
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import LiveEvent, Outcome, StepContext, ToolPrinted
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.rules.intents import CancelTask
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState
from greenroom.policy.policy import build_rules_policy
from tests.abilities.tools.calling import T1, caller
from tests.speed import is_soon

KEY = "sk-planted-0123456789abcdef"
MIB = 1024 * 1024


class Tells:
    """A tool of somebody who says the key in every way there is."""

    type: StepType = "tool"
    name: str = "tells"
    description: str = "Tells."

    def __init__(self) -> None:
        schema: Data = {"type": "object", "properties": {"how": {"type": "string"}}}
        self.card = ToolCard(spec=ToolSpec(name=self.name, description="", parameters=schema), group="read")

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing."""
        return ()

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """At most once."""
        return StepTerms(effect="effectful")

    async def run(self, context: StepContext) -> Outcome:
        """Say it."""
        context.show(ToolPrinted(text=f"live {KEY}\n"))
        match (context.step.work.instruction_content or {}).get("how"):
            case "raise":
                raise RuntimeError(f"no luck with {KEY}")
            case "fail":
                return Outcome(state="failed", error=f"refused: {KEY}")
            case "keep":
                return Outcome(result={"output": "kept"}, blobs=(await context.keep(f"x{KEY}x".encode()),))
            case "hang":
                context.set_partial_outcome(lambda: Outcome(result={"output": f"left {KEY}"}))
                await asyncio.sleep(600)
            case _:
                pass
        return Outcome(result={"output": f"a{KEY}b \x1b[1m{KEY[:9]}\x1b[0m{KEY[9:]}", "more": [{KEY: (KEY, 1)}]})


class Seen:
    """What came of calls, and all that was written or shown on the way."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.live: list[str] = []
        self.something = asyncio.Event()

    def watch(self, _: Step, event: LiveEvent) -> None:
        """What those see who watch."""
        assert isinstance(event, ToolPrinted)
        self.live.append(event.text)
        self.something.set()


def told(home: Path) -> bytes:
    """All bytes below the home."""
    return b"".join(one.read_bytes() for one in sorted(home.rglob("*")) if one.is_file())


async def called(tmp_path: Path, *calls: tuple[str, Data], cancel: bool = False) -> Seen:
    """Make these calls in a team on a real log."""
    root = tmp_path / "work"
    allow = ("allow tool tells", "allow command printf", "allow command cat", "allow command echo")
    policy = build_rules_policy({"granted": allow}, str(root))
    hands = Toolset(root, policy, tool_source=ToolSource(tools=(Tells(),)), secrets=[KEY])
    seen = Seen()
    try:
        async with caller(hands.executors, await SqliteLog.open(tmp_path / "home")) as team, asyncio.timeout(30):
            (await team.runtime.start(team.team)).watch(seen.watch)
            for name, given in calls:
                await team.begin(name, **given)
            if cancel:
                await seen.something.wait()
                await team.runtime.ask(team.team, CancelTask(task_id=T1))
            await team.runtime.wait(team.team, T1)
            seen.steps = await team.steps()
    finally:
        await hands.close()
    return seen


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text(f"token = {KEY}\n", encoding="utf-8")


@pytest.mark.req("G-6")
@pytest.mark.parametrize("how", ["say", "fail", "raise", "keep"])
async def test_a_tool_that_tells_a_key_is_not_heard(tmp_path: Path, how: str) -> None:
    seen = await called(tmp_path, ("tells", {"how": how}))
    assert seen.live == [f"live {MASK}\n"]
    assert KEY not in str(seen.steps)
    assert KEY.encode() not in told(tmp_path / "home")
    if how != "keep":
        assert MASK in str(seen.steps)


async def test_what_is_left_of_a_call_that_was_cancelled_tells_no_key_either(tmp_path: Path) -> None:
    seen = await called(tmp_path, ("tells", {"how": "hang"}), cancel=True)
    assert [step.result for step in seen.steps] == [{"output": f"left {MASK}"}]
    assert KEY.encode() not in told(tmp_path / "home")


async def test_a_command_that_finds_a_key_and_a_file_that_holds_one_are_read_without_it(tmp_path: Path) -> None:
    seen = await called(tmp_path, ("execute_script", {"script": "cat notes.txt"}), ("read_code", {"file": "notes.txt"}))
    command, read = (str((step.result or {}).get("output")) for step in seen.steps)
    assert f"token = {MASK}\n" in command
    assert f"token = {MASK}" in read
    assert KEY.encode() not in told(tmp_path / "home")


async def test_what_is_read_later_of_a_long_result_has_no_key_in_it_either(tmp_path: Path) -> None:
    (tmp_path / "work" / "long.txt").write_text(f"before\n{'x' * 99}\n" * 900 + KEY, encoding="utf-8")
    seen = await called(
        tmp_path,
        ("execute_script", {"script": "cat long.txt"}),
        ("read_output", {"handle": "ann#1", "pattern": "secret"}),
    )
    assert f"1801: {MASK}" in str(seen.steps[-1].result)
    assert KEY.encode() not in told(tmp_path / "home")


async def test_what_stands_for_a_key_is_never_written_into_its_place(tmp_path: Path) -> None:
    seen = await called(
        tmp_path,
        ("read_code", {"file": "notes.txt"}),
        ("rewrite", {"file": "notes.txt", "content": f"token = {MASK}\nmore\n"}),
    )
    assert "stands for a hidden key" in seen.steps[-1].error
    assert (tmp_path / "work" / "notes.txt").read_text() == f"token = {KEY}\n"


def test_the_keys_that_are_known_are_those_of_models() -> None:
    environ = {"OPENAI_API_KEY": KEY, "MY_KEY": "mine-12345678", "DB_PASSWORD": "postgres1", "HOME": "/home/ann12345"}
    settings = ProviderSettings(
        key_env="MY_KEY",
        key=Secret("x", "typed-12345678"),
        headers={"Authorization": "Bearer header-12345678", "Accept": "application/json"},
    )
    known = find_known_secrets(environ, [settings], ["saved-12345678"])
    assert set(known) == {KEY, "mine-12345678", "typed-12345678", "header-12345678", "saved-12345678"}


@pytest.mark.parametrize("word", ["", "ollama", "not-needed", "abc123", "        "])
def test_a_word_is_no_secret(word: str) -> None:
    assert not SecretRedactor([word])


def test_a_key_that_begins_like_another_is_found_whole() -> None:
    redaction = SecretRedactor(["sk-12345678", "sk-12345678-longer"])
    assert redaction.text("a sk-12345678-longer b sk-12345678 c") == f"a {MASK} b {MASK} c"


def test_what_stands_for_a_key_is_found_in_any_shape() -> None:
    assert contains_mask({"files": [{"content": f"x{MASK}"}]})
    assert not contains_mask({"files": [{"content": "secret", "n": 5}]})


def nasty(size: int) -> Iterable[str]:
    """Texts that are slow to search."""
    yield "s" * size
    yield "sk-planted-" * (size // 11)
    yield f"{KEY[:-1]} " * (size // len(KEY))


def test_fifty_megabytes_are_searched_in_a_moment() -> None:
    redaction = SecretRedactor([KEY, *(f"sk-other-{number}-0123456789" for number in range(10))])
    for text in nasty(50 * MIB):
        began = time.process_time()
        assert redaction.text(text) == text
        assert is_soon(time.process_time() - began, 5)


def test_a_program_that_has_no_use_for_our_keys_gets_none_of_them() -> None:
    told = (ProviderSettings(key_env="MINE"), ProviderSettings(key=Secret("x", "sk-in-settings-01")))
    around = {
        "OPENAI_API_KEY": "short",
        "MINE": KEY,
        "A_COPY": f" {KEY}",
        "OTHER": "sk-in-settings-01",
        "WORD": "short",
    }
    assert remove_secrets({**around, "PATH": "/bin"}, told) == {"WORD": "short", "PATH": "/bin"}
