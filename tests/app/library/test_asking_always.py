"""Every call is asked about, or only by yes and no, or nobody is there: how people are asked is the program's own."""

from pathlib import Path

import pytest

from greenroom import Agent, AnswerApproval, ApprovalRequest, Greenroom, ModelRequest, RefusedError, Step, tool
from greenroom.core.base.ids import TeamId
from greenroom.core.state.approval import ApprovalAnswered
from tests.abilities.skills import talks
from tests.abilities.skills.talks import Played, calls, says


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one file in it, of somebody who has set nothing."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "hello.py").write_text("print('hello')\n")
    return folder


@tool
def pay() -> str:
    """Pay."""
    return "paid"


def reporting(*replies: talks.Answer) -> Played:
    """Makes these calls one after the other, then says what they came to."""
    left = list(replies)

    def play(request: ModelRequest) -> talks.Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        return left.pop(0) if left else says("\n".join(told))

    return Played(play)


READ = calls("read_code", file="hello.py")


async def asked_of(house: Greenroom, agent: Agent[str], *, yes: bool = True) -> tuple[list[str], str]:
    """Which tools somebody was asked about, and what came of it all."""
    heard: list[ApprovalRequest] = []

    def approve(asked: ApprovalRequest) -> bool:
        heard.append(asked)
        assert (asked.grant, "Every call is confirmed." in asked.reason) == ("", True)
        return yes

    result = await house.run(agent, "Go.", approve=approve)
    return [one.tool for one in heard], result.output


@pytest.mark.req("AG-135", "AG-165")
@pytest.mark.parametrize("yes", [True, False])
async def test_with_confirm_calls_every_call_is_asked_about(work: Path, yes: bool) -> None:
    agent = Agent("ann", tools=["read_code", pay], model=reporting(READ, calls("pay", "c2")))
    async with Greenroom(in_memory=True, workspace=work, confirm_calls=True) as house:
        tools, output = await asked_of(house, agent, yes=yes)
    assert tools == ["read_code", "pay"]
    assert ("print('hello')" in output, "paid" in output) == (yes, yes)
    assert output.count("Denied by the person.") == (0 if yes else 2), "each call has its result, also one refused"


@pytest.mark.req("AG-165")
@pytest.mark.parametrize(
    ("setting", "house_says", "agent_says", "asked"),
    [
        ("", None, None, False),
        ("execute_tool_confirm = true", None, None, True),
        ("execute_tool_confirm = true", False, None, False),
        ("execute_tool_confirm = true", None, False, False),
        ("", True, None, True),
        ("", True, False, False),
        ("", None, True, True),
    ],
)
async def test_the_setting_is_what_holds_where_neither_house_nor_agent_says_otherwise(
    tmp_path: Path, setting: str, house_says: bool | None, agent_says: bool | None, asked: bool
) -> None:
    (tmp_path / "config" / "greenroom").mkdir(parents=True)
    (tmp_path / "config" / "greenroom" / "config.toml").write_text(setting)
    agent = Agent("ann", tools=[pay], model=reporting(calls("pay")), confirm_calls=agent_says)
    async with Greenroom(in_memory=True, confirm_calls=house_says) as house:
        assert await asked_of(house, agent) == (["pay"] if asked else [], "paid")


async def test_what_a_rule_forbids_is_not_asked_about_either(work: Path) -> None:
    agent = Agent("ann", tools=[pay], model=reporting(calls("pay")))
    async with Greenroom(in_memory=True, rules=["deny tool pay"], confirm_calls=True) as house:
        tools, output = await asked_of(house, agent)
    assert tools == []
    assert output.startswith("Not permitted")


@pytest.mark.req("AG-174")
async def test_a_function_may_wait_and_the_one_of_a_run_comes_before_that_of_its_greenroom() -> None:
    async def refuse(_: ApprovalRequest) -> bool:
        return False

    agents = [Agent("ann", tools=[pay], confirm_calls=True, model=reporting(calls("pay"))) for _ in range(2)]
    async with Greenroom(in_memory=True, approve=refuse) as house:
        assert (await house.run(agents[0], "Go.")).output == "Denied by the person."
        assert (await house.run(agents[1], "Go.", approve=lambda _: True)).output == "paid"


@pytest.mark.parametrize("by", ["argument", "environment"])
@pytest.mark.req("AG-152")
async def test_where_nobody_is_there_each_question_has_its_answer_at_once_and_the_log_says_so(
    work: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "environment":
        monkeypatch.setenv("GREENROOM_NON_INTERACTIVE", "true")

    def approve(_: ApprovalRequest) -> bool:
        raise AssertionError("nobody is there")

    question = calls("ask_user", "c2", question="Which database?")
    agent = Agent(
        "ann", toolsets=["command", "human"], model=reporting(calls("execute_script", script="touch a"), question)
    )
    given = True if by == "argument" else None
    async with Greenroom(in_memory=True, workspace=work, non_interactive=given) as house:
        result = await house.run(agent, "Go.", approve=approve)
        steps = [one async for one in house.runtime.archive(result.run_id, "step") if isinstance(one, Step)]
    assert not (work / "a").exists()
    assert "no person can approve it (non-interactive)" in result.output
    assert "No person can answer (non-interactive). Decide yourself" in result.output
    script, asked = (one for one in steps if one.work.type == "tool")
    assert (script.state, "touch a" in script.error) == ("failed", True)
    assert script.error.endswith("what is missing.")
    assert (asked.state, dict(asked.result or {})["by"]) == ("finished", "default")


@pytest.mark.parametrize(
    ("call", "by_default"),
    [
        (calls("execute_script", script="touch a"), "Denied by system. No person can approve it"),
        (calls("ask_user", question="Which database?"), "No person can answer (non-interactive). Decide yourself"),
    ],
    ids=["command", "question"],
)
async def test_what_a_run_was_left_waiting_for_is_answered_by_default_when_it_goes_on_with_nobody_there(
    work: Path, tmp_path: Path, call: talks.Answer, by_default: str
) -> None:
    agent = Agent("ann", toolsets=["command", "human"], model=reporting(call))
    home = tmp_path / "home"
    async with Greenroom(home, workspace=work) as house:
        with pytest.raises(RefusedError, match="Approval is needed"):
            await house.run(agent, "Go.")
    async with Greenroom(home, workspace=work, non_interactive=True) as house:
        result = await house.run(agent, resume="last")
        told = [one.event async for one in house.runtime.events(TeamId(result.run_id))]
    assert by_default in result.output
    assert [one.by for one in told if isinstance(one, ApprovalAnswered)] == ["system"]


async def test_what_a_person_has_agreed_to_before_they_left_is_done(work: Path, tmp_path: Path) -> None:
    agent = Agent("ann", toolsets=["command"], model=reporting(calls("execute_script", script="touch a")))
    home = tmp_path / "home"
    async with Greenroom(home, workspace=work) as house:
        with pytest.raises(RefusedError, match="Approval is needed") as fault:
            await house.run(agent, "Go.")
        (asked,) = (await house.runtime.state(TeamId(fault.value.run_id))).approvals
        await house.runtime.ask(TeamId(fault.value.run_id), AnswerApproval(approval_id=asked, answer="approved"))
    async with Greenroom(home, workspace=work, non_interactive=True) as house:
        await house.run(agent, resume="last")
    assert (work / "a").exists()


async def test_what_the_person_forbids_meanwhile_holds_from_the_next_run_on(tmp_path: Path) -> None:
    rules = tmp_path / "config" / "greenroom" / "permissions"
    rules.parent.mkdir(parents=True)
    agent = Agent("ann", tools=[pay], model=reporting(calls("pay"), says("done"), calls("pay", "c2")))
    async with Greenroom(in_memory=True) as house:
        assert (await house.run(agent, "Go.")).output == "done"
        rules.write_text("deny tool pay\n")
        rules.chmod(0o600)
        assert "paid" not in (await house.run(agent, "Go.")).output
