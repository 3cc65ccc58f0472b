"""`retrospective`: before work ends the person is asked, and a skill is saved only if they agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom.cli.exit_codes import Exit
from greenroom.core.ports.model import Failed
from greenroom.testing.scripted import Cue, ReplyMaker
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import call
from tests.cli.conftest import Type

PROPOSAL = """Reading the tests first saved time.
<skill>
name: ../Rates
description: How rates are added to this kind of shop.
---
Write the test first. Run `make check`.
</skill>"""


@pytest.fixture
def looks_back(shop: Path, script: Script, greenroom: Type) -> Callable[..., Any]:
    """Return a function that runs the agent `ann` with a retrospective. It answers `reply` when it looks back."""
    (shop / ".greenroom" / "agents").mkdir(parents=True)
    text = "---\ntools: [read_code]\n{keys}\n---\nDo it.\n"

    def run(
        reply: ReplyMaker, *options: str, keys: str = "use_analysis: true", done: ReplyMaker = "It is done."
    ) -> Any:
        (shop / ".greenroom" / "agents" / "ann.md").write_text(text.format(keys=keys))
        assert greenroom("trust", "--yes").code == 0
        script([Cue(skill="retrospect", reply=reply), Cue(skill="summarize", reply="Short."), Cue(reply=done)])
        return greenroom("run", "--question", "--agent", "ann", "What does it do?", *options)

    return run


def saved(tmp_path: Path) -> Path:
    return tmp_path / "config" / "greenroom" / "skills" / "rates" / "SKILL.md"


@pytest.mark.req("AG-100", "AG-101", "AG-102", "AG-103", "AG-104", "AG-106", "AG-170")
@pytest.mark.parametrize(("word", "is_kept"), [("yes", True), ("no", False)])
def test_a_skill_is_proposed_after_the_persons_answer_and_saved_only_with_consent(
    looks_back: Callable[..., Any], greenroom: Type, tmp_path: Path, word: str, is_kept: bool
) -> None:
    waits = looks_back(PROPOSAL, keys="use_analysis: true\nneed_summary: true")
    assert waits.code == Exit.WAITING, waits.err
    assert "Are you satisfied" in waits.out + waits.err
    offers = greenroom("answer", "last", "yes, but faster next time")
    assert offers.code in (0, Exit.WAITING), offers.err
    resumed = greenroom("resume", "last")
    assert resumed.code == Exit.WAITING, resumed.err
    assert "Write the test first." in resumed.out + resumed.err
    assert not saved(tmp_path).exists()
    answered = greenroom("answer", "last", word)
    assert answered.code in (0, Exit.WAITING), answered.err
    ended = greenroom("resume", "last")
    assert (ended.code, "Short." in ended.out) == (0, True), ended.err
    assert saved(tmp_path).exists() is is_kept
    assert "yes, but faster next time" in greenroom("events", "last", "--output-format", "json").out, "it is kept"


@pytest.mark.req("AG-105")
@pytest.mark.parametrize("reply", [Failed(kind="filter", why="No."), "Nothing to learn."])
@pytest.mark.parametrize("ends", ["text", "finish"])
def test_finished_work_ends_as_such_although_the_retrospective_fails_or_finds_nothing(
    looks_back: Callable[..., Any], greenroom: Type, reply: ReplyMaker, ends: str
) -> None:
    done = call("finish", summary="It is done.") if ends == "finish" else "It is done."
    assert looks_back(reply, keys=f"use_analysis: true\nends: {ends}", done=done).code == Exit.WAITING
    assert greenroom("answer", "last", "yes").code == 2, "the question needs words"
    assert greenroom("answer", "last", "fine").code in (0, Exit.WAITING)
    ended = greenroom("resume", "last")
    assert (ended.code, "It is done." in ended.out) == (0, True), ended.err


def test_a_person_who_does_not_want_to_look_back_ends_the_work(looks_back: Callable[..., Any], greenroom: Type) -> None:
    assert looks_back(PROPOSAL).code == Exit.WAITING
    greenroom("answer", "last", "no")
    assert greenroom("resume", "last").code == 0


@pytest.mark.parametrize(("keys", "options"), [("use_analysis: true", ["--non-interactive"]), ("rounds: 5", [])])
def test_without_a_person_or_the_key_there_is_no_retrospective(
    looks_back: Callable[..., Any], keys: str, options: list[str]
) -> None:
    ended = looks_back(PROPOSAL, *options, keys=keys)
    assert (ended.code, "It is done." in ended.out) == (0, True), ended.err


@pytest.mark.req("AG-153")
def test_the_settings_turn_it_on_for_all_agents(looks_back: Callable[..., Any], home: Path, tmp_path: Path) -> None:
    settings = tmp_path / "config" / "greenroom" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[agents]\nretrospective = true\n")
    assert looks_back(PROPOSAL, keys="rounds: 5").code == Exit.WAITING


def test_a_skill_of_a_person_is_never_replaced(looks_back: Callable[..., Any], greenroom: Type, tmp_path: Path) -> None:
    saved(tmp_path).parent.mkdir(parents=True)
    saved(tmp_path).write_text("---\ndescription: Mine.\n---\nMine.\n")
    assert looks_back(PROPOSAL).code == Exit.WAITING
    ended = [
        greenroom(*words)
        for words in (["answer", "last", "fine"], ["resume", "last"], ["answer", "last", "yes"], ["resume", "last"])
    ]
    assert ended[-1].code == 0
    assert "Mine." in saved(tmp_path).read_text()
    assert "Write the test first." in (saved(tmp_path).parents[1] / "rates-2" / "SKILL.md").read_text()
