"""`greenroom replan`: another plan for a team that is paused or runs, in one commit by the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.lookup import resolve_id
from greenroom.app.run_plan import Parse
from greenroom.app.teams.replan import build_replan
from greenroom.cli.commands import plan
from greenroom.cli.context import Invocation
from greenroom.teamwork.plan import Plan
from greenroom.testing.scripted import Cue
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import call, done
from tests.cli.commands.test_run_team import PLAN, answers, edit_with, needs_sandbox
from tests.cli.conftest import Type
from tests.e2e.terminal import greenroom as start_process

__all__ = ["answers"]
MORE = '\n[[subtasks]]\nid = "rebate"\nagent = "code-writer"\nwrites = ["shop/rebate.py"]\ndependencies = ["tax"]\n'


def writes(agent: str, file: str) -> list[Cue]:
    first = call("rewrite", file=file, content="ONE = 1\n")
    return [Cue(agent=agent, turn=1, reply=first), Cue(agent=agent, reply=done("done"))]


@pytest.fixture
def paused(shop: Path, greenroom: Type, script: Script) -> Path:
    """Return the text of the plan of a team that a limit has paused in its first subtask."""
    script([*writes("code-writer-1", "shop/tax.py"), *writes("code-writer-2", "shop/rebate.py")])
    (shop / "p.toml").write_text(PLAN.format(needs='"tax"'))
    stopped = greenroom("run", "--plan", "p.toml", "--yes", "--max-tokens", "1")
    assert stopped.code == 5, stopped.err
    path = shop.parent / "new.toml"
    path.write_text(greenroom("replan", "last", "--show").out)
    return path


@needs_sandbox
def test_a_paused_team_gets_another_plan_and_goes_on_with_it(paused: Path, shop: Path, greenroom: Type) -> None:
    text = paused.read_text()
    assert '# running: it stays as it is\n[[subtasks]]\nid = "tax"' in text
    paused.write_text(text.partition('\n[[subtasks]]\nid = "discount"')[0] + MORE)
    ended = greenroom("replan", "last", "--file", str(paused))
    assert ended.code == 0, ended.err
    assert "has a new plan: tax, rebate." in ended.out
    went_on = greenroom("resume", "last", "--yes", "--max-tokens", "none", "--apply")
    assert went_on.code == 0, went_on.err
    assert (shop / "shop" / "rebate.py").exists()
    assert not (shop / "shop" / "discount.py").exists()


@needs_sandbox
def test_a_plan_that_got_more_subtasks_while_it_was_edited_is_kept(
    paused: Path, greenroom: Type, answers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = paused.read_text()

    async def edit(cli: Invocation, _: str, parse: Parse) -> Plan:
        team = (await resolve_id(cli.runtime, "last")).team
        state = await cli.runtime.state(team)
        added = build_replan(state, next(iter(state.stages.values())), parse(before + MORE))
        await cli.runtime.ask(team, added)
        return parse(before)

    monkeypatch.setattr(plan, "edit_plan", edit)
    ended = greenroom("replan", "last")
    assert ended.code == 2
    assert "The plan has changed meanwhile: rebate. Nothing was changed." in ended.err
    assert "Your text is kept in " in ended.err
    assert 'id = "rebate"' in greenroom("replan", "last", "--show").out


@needs_sandbox
@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ('writes = ["shop/tax.py"]', 'writes = ["shop/other.py"]', ["tax"]),
        ('writes = ["shop/discount.py"]', 'writes = ["shop/other.py"]', []),
        ("", "", []),
    ],
    ids=["started", "waiting", "nothing"],
)
def test_a_started_subtask_whose_text_differs_is_named(
    paused: Path, greenroom: Type, old: str, new: str, kept: list[str]
) -> None:
    paused.write_text(paused.read_text().replace(old, new) if old else paused.read_text())
    told = greenroom("replan", "last", "--file", str(paused))
    assert (told.code, "These have started and stay as they are: tax." in told.err) == (0, bool(kept)), told.err
    assert greenroom("replan", "last", "--file", str(paused), "--output-format", "json").json["kept"] == kept


@needs_sandbox
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('agent = "code-writer"', 'agent = "code-writter"', "There is no specialist `code-writter`."),
        ('dependencies = ["tax"]', 'dependencies = ["discount"]', "in a cycle: discount → discount."),
        ('request = "add tax"', 'request = "add more"', "Only the subtasks of a run can change, not `request`."),
        ("[[subtasks]]", "[[subtasks]", "cannot be read as TOML"),
        ('id = "tax"', 'id = "taxes"', "tax"),
    ],
)
@pytest.mark.req("RC-132")
def test_a_faulty_plan_changes_nothing(paused: Path, greenroom: Type, old: str, new: str, why: str) -> None:
    before = paused.read_text()
    paused.write_text(before.replace(old, new).replace('dependencies = ["tax"]', "dependencies = []"))
    refused = greenroom("replan", "last", "--file", str(paused))
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused.err
    assert why in refused.err
    assert greenroom("replan", "last", "--show").out == before


@needs_sandbox
def test_the_editor_opens_again_after_a_fault_and_a_refused_text_is_kept(
    paused: Path, greenroom: Type, answers: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = paused.read_text()
    edit_with(
        monkeypatch, tmp_path, ["nothing = [", text.replace('id = "tax"', 'id = "taxes"').replace('["tax"]', "[]")]
    )
    answers += ["e"]
    refused = greenroom("replan", "last")
    assert refused.code == 2
    assert "Line 1: The plan cannot be read as TOML" in refused.err
    kept = refused.err.partition("Your text is kept in ")[2].partition(".toml.")[0]
    assert 'id = "taxes"' in Path(f"{kept}.toml").read_text()


def test_what_has_no_plan_is_refused(shop: Path, greenroom: Type, script: Script) -> None:
    script([Cue(agent="assistant", reply="Blue.")])
    assert greenroom("ask", "Why?").code == 0
    refused = greenroom("replan", "last")
    assert (refused.code, "it is not a team run" in refused.err) == (2, True)


def test_an_unknown_run_is_refused_in_a_process_of_its_own(tmp_path: Path) -> None:
    assert start_process(tmp_path / "home", "replan", "nope").code == 2
