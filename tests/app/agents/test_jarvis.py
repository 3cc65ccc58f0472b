"""Files with `design: jarvis`: the arguments of Jarvis' agents work as keys, in runs and conversations."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom import Agent, ApprovalRequest, Done, Greenroom, GreenroomError, TeamId, WorldFault, tool
from greenroom.abilities.tools.tool import DEFAULT_TOOLS
from greenroom.app.agents.coder import CODER_TOOLS, build_coder
from greenroom.testing.scripted import Cue, ScriptedModel, ScriptItem


@pytest.fixture(name="folder", autouse=True)
def a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one file in it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("first\n", encoding="utf-8")
    return tmp_path


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def burn() -> str:
    """Burn."""
    raise ValueError("no water")


@tool
def solve() -> Done:
    """Solve it."""
    return Done("It is 42.")


def load(folder: Path, *keys: str, prompt: str = "You help.") -> Agent[str]:
    path = folder / "helper.md"
    path.write_text("\n".join(["---", "design: jarvis", *keys, "---", prompt]), encoding="utf-8")
    return Agent.from_file(path, tools=[pay, burn, solve])


def block(name: str, arguments: str = "{}") -> str:
    return f'<TOOL_CALL>\n{{"name": "{name}", "arguments": {arguments}}}\n</TOOL_CALL>'


PAY = block("pay", '{"amount": 5}')
PATCH = '<PATCH file="a.txt">\n<SEARCH>first</SEARCH>\n<REPLACE>second</REPLACE>\n</PATCH>'
DONE = "Done. ot('!!!COMPLETE!!!')"


async def play(agent: Agent[str], *replies: ScriptItem, yes: bool = True) -> tuple[str, list[str], list[str]]:
    """Run it in its folder. Return the answer, what the agent read after each reply, and which tools were asked for."""
    model, asked = ScriptedModel(replies), list[str]()

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return yes

    async with Greenroom(in_memory=True, models=model, workspace=Path(), approve=approve) as greenroom:
        result = await greenroom.run(agent, "Go.")
    heard = ["\n".join(message.content for message in request.messages[2:]) for request in model.requests[1:]]
    return result.text, heard, asked


def list_tools(folder: Path, agent: Agent[str]) -> set[str]:
    specs = Greenroom(in_memory=True, workspace=folder).tools_of(agent)
    return {spec.name for spec in specs} - {"read_output"}


OWN = {"pay", "burn", "solve"}


@pytest.mark.req("AG-70", "AG-163", "AG-164", "AG-172")
def test_use_tools_and_disable_file_edit_decide_what_the_agent_has(folder: Path) -> None:
    assert list_tools(folder, load(folder)) == OWN | set(DEFAULT_TOOLS)
    assert list_tools(folder, load(folder, "use_tools: [read_code, patch]")) == OWN | {"read_code", "patch"}
    bare = load(folder, "disable_file_edit: true")
    assert not {"patch", "rewrite"} & list_tools(folder, bare)
    assert (bare.spec.turn.protocols, load(folder).spec.turn.protocols[1:]) == (("tool_call",), ("patch", "rewrite"))
    with pytest.raises(WorldFault, match=r"`raed_code`, which does not exist\. Did you mean `read_code`"):
        list_tools(folder, load(folder, "use_tools: [raed_code]"))


@pytest.mark.req("AG-135", "AG-165")
@pytest.mark.parametrize("yes", [True, False])
async def test_execute_tool_confirm_asks_about_every_call(folder: Path, yes: bool) -> None:
    agent = load(folder, "execute_tool_confirm: true")
    answer, heard, asked = await play(agent, block("list_files"), PAY, DONE, yes=yes)
    assert (answer, asked) == ("Done.", ["list_files", "pay"])
    assert ("a.txt" in heard[0], "paid 5" in heard[1]) == (yes, yes)
    assert ("Denied by the person." in heard[1]) is not yes


def test_a_file_cannot_turn_confirmation_off(folder: Path) -> None:
    with pytest.raises(WorldFault, match="a file can only ask for more approvals"):
        load(folder, "execute_tool_confirm: false")


@pytest.mark.req("AG-10", "AG-62", "AG-132", "AG-134", "AG-136", "AG-137")
async def test_the_handler_that_can_read_a_reply_runs_it_and_its_failure_is_text(folder: Path) -> None:
    agent = load(folder, "output_handler: [ToolRegistry]")
    file = folder / "a.txt"
    answer, heard, _ = await play(agent, PATCH, block("burn"), PAY, DONE)
    assert (answer, file.read_text(encoding="utf-8")) == ("Done.", "first\n"), "no handler reads a PATCH here"
    assert "ValueError: no water" in heard[1]
    assert "paid 5" in heard[2]
    answer, heard, _ = await play(load(folder), PATCH, block("solve"))
    assert (answer, file.read_text(encoding="utf-8")) == ("It is 42.", "second\n"), "need_return ends the work"
    assert len(heard) == 1


@pytest.mark.req("AG-36", "AG-162", "AG-175")
@pytest.mark.parametrize(("key", "ends"), [("", False), ("auto_complete: true", True), ("auto_complete: false", False)])
async def test_a_mark_ends_a_run_where_no_person_is_and_a_conversation_only_if_the_file_says_so(
    folder: Path, key: str, ends: bool
) -> None:
    agent = load(folder, "use_tools: [pay]", *filter(None, [key]))
    async with Greenroom(in_memory=True, models=ScriptedModel([DONE, DONE])) as greenroom:
        if key == "auto_complete: false":
            with pytest.raises(GreenroomError, match="may not end its task by itself"):
                await greenroom.run(agent, "Go.")
        else:
            assert (await greenroom.run(agent, "Go.")).text == "Done."
        async with greenroom.chat(agent) as conversation:
            await conversation.send("Go.")
            assert (not (await greenroom.runtime.state(TeamId(conversation.id))).tasks) is ends


@pytest.mark.req("AG-180")
def test_a_code_agent_has_the_instructions_and_tools_of_the_coder_and_its_own_after_them(folder: Path) -> None:
    agent = load(folder, "agent_type: code", "model_group: strong", prompt="Use tabs.")
    assert agent.spec.prompt == f"{build_coder('en').prompt}\n\nUse tabs."
    assert set(agent.spec.tools) == {*CODER_TOOLS, *OWN}
    assert agent.spec.llm_config == {"model": "strong"}
    assert load(folder, "agent_type: code", "use_tools: [read_code]").spec.tools[:1] == ("read_code",)
    assert load(folder, "agent_type: normal").spec == load(folder).spec


@pytest.mark.req("AG-3", "AG-13", "AG-167", "AG-185", "AG-186")
async def test_an_agent_survives_empty_replies_long_output_a_long_history_and_failing_callbacks(folder: Path) -> None:
    (folder / "long.txt").write_text("\n".join(f"line {number}" for number in range(9_000)), encoding="utf-8")
    agent, heard = load(folder, "auto_summary_rounds: 2"), list[str]()

    def break_down(**_: object) -> None:
        heard.append("called")
        raise RuntimeError("broken")

    read = block("execute_script", '{"script": "cat long.txt"}')
    model = ScriptedModel([Cue(skill="compact", reply="It read a long file."), "", read, PAY, DONE])
    async with Greenroom(in_memory=True, models=model, workspace=folder, approve=lambda _: True) as greenroom:
        greenroom.events.subscribe("after_tool_call", break_down)
        greenroom.events.subscribe("before_history_clear", break_down)
        assert (await greenroom.run(agent, "Go.")).text == "Done."
    assert len(heard) == 3
    texts = ["\n".join(message.content for message in request.messages) for request in model.requests]
    assert any("line 0\n" in text and "line 8999" in text and "line 4000\n" not in text for text in texts)
    assert "It read a long file." in texts[-1]
