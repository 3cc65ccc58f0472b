"""Agents of programs have the tools of the house: in a folder, under its policy, asked about by the program."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom import (
    Agent,
    ApprovalDecision,
    ApprovalRequest,
    Done,
    Greenroom,
    ModelRequest,
    RefusedError,
    WorldFault,
    tool,
)
from tests.abilities.skills import talks
from tests.abilities.skills.talks import Played, calls, in_order, says


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with one file in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "hello.py").write_text("print('hello')\n")
    return folder


def told(request: ModelRequest) -> list[str]:
    """What the tools have said so far."""
    return [one.content for one in request.messages if one.role == "tool"]


def reporting(*replies: talks.Answer) -> Played:
    """Makes these calls one after the other, then says what the last one came to."""
    left = list(replies)
    return Played(lambda request: left.pop(0) if left else says(told(request)[-1]))


def touching(*names: str) -> Played:
    """Runs `touch` for each of these, in a turn of its own."""
    return reporting(*(calls("execute_script", name, script=f"touch {name}.txt") for name in names))


async def test_reading_and_editing_in_the_workspace_needs_nobody(work: Path) -> None:
    edit = {"search": "hello", "replace": "goodbye"}
    model = reporting(calls("read_code", file="hello.py"), calls("patch", "c2", file="hello.py", edits=[edit]))
    agent = Agent("coder", tools=["read_code"], toolsets=["edit"], model=model)
    async with Greenroom(in_memory=True, workspace=work) as house:
        await house.run(agent, "Say goodbye.")
    assert (work / "hello.py").read_text() == "print('goodbye')\n"
    assert "print('hello')" in told(model.asked[1])[0]
    offered = [one.name for one in model.asked[0].tools]
    assert offered == ["read_code", "patch", "rewrite", "read_output"]


async def test_a_command_is_asked_about_with_why_and_with_what_always_would_mean(work: Path) -> None:
    heard: list[ApprovalRequest] = []

    async def approve(asked: ApprovalRequest) -> bool:
        heard.append(asked)
        return True

    async with Greenroom(in_memory=True, workspace=work) as house:
        await house.run(Agent("coder", toolsets=["command"], model=touching("a")), "Go.", approve=approve)
    (asked,) = heard
    assert (asked.tool, asked.arguments, asked.grant) == (
        "execute_script",
        {"script": "touch a.txt"},
        "allow line touch a.txt",
    )
    assert asked.question == f"coder wants to run a command. {asked.reason}"
    assert "touch a.txt" in asked.reason
    assert (work / "a.txt").exists()


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (True, 2),
        (ApprovalDecision.once, 2),
        (ApprovalDecision.run, 1),
        (ApprovalDecision.always, 1),
        (ApprovalDecision.deny, 2),
        (False, 2),
    ],
)
async def test_an_answer_holds_for_once_or_for_the_run(work: Path, answer: bool | ApprovalDecision, asked: int) -> None:
    heard: list[ApprovalRequest] = []

    def approve(one: ApprovalRequest) -> bool | ApprovalDecision:
        heard.append(one)
        return answer

    model = reporting(*(calls("execute_script", name, script="touch a.txt") for name in ("c1", "c2")))
    async with Greenroom(in_memory=True, workspace=work) as house:
        await house.run(Agent("coder", toolsets=["command"], model=model), "Go.", approve=approve)
    assert len(heard) == asked
    assert (work / "a.txt").exists() == (answer not in (False, ApprovalDecision.deny))


@pytest.mark.parametrize(("answer", "later"), [(ApprovalDecision.run, 2), (ApprovalDecision.always, 1)])
async def test_always_holds_for_later_runs_in_this_workspace_too(
    work: Path, answer: ApprovalDecision, later: int
) -> None:
    heard: list[ApprovalRequest] = []

    def approve(one: ApprovalRequest) -> ApprovalDecision:
        heard.append(one)
        return answer

    for _ in range(2):
        async with Greenroom(in_memory=True, workspace=work) as house:
            await house.run(Agent("coder", toolsets=["command"], model=touching("a")), "Go.", approve=approve)
    assert len(heard) == later


async def test_what_has_no_rule_to_agree_to_is_agreed_to_once(work: Path) -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = Agent("clerk", tools=[pay], model=reporting(calls("pay")))
    async with Greenroom(in_memory=True, workspace=work) as house:
        assert (await house.run(agent, "Pay.", approve=lambda _: ApprovalDecision.always)).output == "paid"


async def test_without_anybody_who_decides_the_run_waits_and_goes_on_later(work: Path, tmp_path: Path) -> None:
    agent = Agent("coder", toolsets=["command"], model=touching("a"))
    async with Greenroom(tmp_path / "home", workspace=work) as house:
        with pytest.raises(RefusedError, match="Approval is needed: coder wants to run a command") as fault:
            await house.run(agent, "Go.")
    assert not (work / "a.txt").exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with Greenroom(tmp_path / "home", workspace=elsewhere) as house:
        with pytest.raises(WorldFault, match=r"works in .*work\. Continue it there: `Greenroom\(workspace="):
            await house.resume(agent, fault.value.run_id, approve=lambda _: True)
    async with Greenroom(tmp_path / "home", workspace=work) as house:
        await house.resume(agent, "last", approve=lambda _: True)
    assert (work / "a.txt").exists()


@pytest.mark.parametrize(
    ("rules", "script", "output"),
    [
        (["allow command touch"], "touch a.txt", "a.txt"),
        (["deny command ls"], "ls", "Not permitted"),
        (["deny command ls"], "true; ls", "Not permitted"),
    ],
)
async def test_a_program_states_rules_of_its_own(work: Path, rules: list[str], script: str, output: str) -> None:
    model = reporting(calls("execute_script", script=script), calls("list_files", "c2"))
    agent = Agent("coder", toolsets=["command", "read"], model=model)
    async with Greenroom(in_memory=True, workspace=work, rules=rules) as house:
        result = await house.run(agent, "Go.")
    assert output in "\n".join((result.output, *told(model.asked[-1])))


async def test_a_rule_counts_for_functions_of_the_program_too() -> None:
    @tool
    def pay() -> str:
        """Pay."""
        return "paid"

    heard: list[ApprovalRequest] = []

    def approve(asked: ApprovalRequest) -> bool:
        heard.append(asked)
        return True

    for rules in ([], ["ask tool pay"], ["deny tool pay"]):
        async with Greenroom(in_memory=True, rules=rules) as house:
            result = await house.run(Agent("clerk", tools=[pay], model=reporting(calls("pay"))), "Go.", approve=approve)
        assert ("paid" in result.output) == ("deny tool pay" not in rules)
    assert [(one.tool, one.grant) for one in heard] == [("pay", "allow tool pay")]


@pytest.mark.parametrize(
    ("open_it", "said"),
    [
        (lambda work: Greenroom(workspace=work, rules=["permit ls"]), "begins with 'permit', which is not a level"),
        (lambda work: Greenroom(workspace=work, rules="allow command ls"), "cannot be the rules of a Greenroom"),
        (lambda work: Greenroom(workspace=work / "nowhere"), "cannot be a workspace: it is not a folder"),
        (lambda _: Agent("a", toolsets=["reed"]), r"no toolset 'reed'. Did you mean `read`\?"),
        (lambda _: Agent("a", toolsets="read"), r"cannot be the toolsets of an agent. Pass a list"),
    ],
)
def test_what_cannot_be_meant_is_said_at_once(work: Path, open_it: Callable[[Path], object], said: str) -> None:
    with pytest.raises(WorldFault, match=said):
        open_it(work)


async def test_tools_that_are_not_there_are_said_before_anything_is_begun(work: Path) -> None:
    @tool(name="patch")
    def mine() -> str:
        """Mine."""
        return ""

    model = Played(lambda _: says("Hm."))
    async with Greenroom(in_memory=True, workspace=work) as house:
        with pytest.raises(WorldFault, match=r"the tool 'raed_code'. Did you mean `read_code`\?"):
            await house.run(Agent("a", tools=["raed_code"], model=model), "Go.")
        with pytest.raises(WorldFault, match="There is a built-in tool 'patch'"):
            await house.run(Agent("a", tools=[mine], model=model), "Go.")
        assert await house.runs() == []
    async with Greenroom(in_memory=True) as house:
        with pytest.raises(WorldFault, match=r"'a' uses built-in tools \(patch, read\), which need a workspace"):
            await house.run(Agent("a", tools=["patch"], toolsets=["read"], model=model), "Go.")
        freed = await house.run(Agent("a", tools=[mine], model=model), "Go.")
        assert freed.output == "Hm.", "without a workspace the name is free"


def test_a_script_has_them_in_its_own_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    result = Agent("coder", tools=["list_files"], model=reporting(calls("list_files"))).run_sync("What is there?")
    assert "hello.py" in result.output


async def test_a_command_in_the_background_ends_with_the_run(work: Path) -> None:
    @tool(effect="pure")
    def wait() -> str:
        """Wait until it runs."""
        until = time.monotonic() + 20
        while time.monotonic() < until and not (work / "pid").exists():
            time.sleep(0.01)
        return "It runs."

    start = calls("execute_script", script="echo $$ > .pid && mv .pid pid && exec sleep 600", background=True)
    agent = Agent("coder", toolsets=["command"], tools=[wait], model=reporting(start, calls("wait", "c2")))
    async with Greenroom(in_memory=True, workspace=work) as house:
        await house.run(agent, "Go.", approve=lambda _: True)
    pid = int((work / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("said", "output"), [("SQLite", "SQLite"), (False, "Denied by the person. There is no answer.")]
)
async def test_a_question_in_words_is_answered_in_words(work: Path, said: str | bool, output: str) -> None:
    heard: list[ApprovalRequest] = []

    def approve(asked: ApprovalRequest) -> bool | str:
        heard.append(asked)
        return said

    agent = Agent("coder", toolsets=["human"], model=reporting(calls("ask_user", question="Which database?")))
    async with Greenroom(in_memory=True, workspace=work) as house:
        result = await house.run(agent, "Go.", approve=approve)
    assert result.output == output
    assert [(one.question, one.wants_text) for one in heard] == [("Which database?", True)]


async def test_the_answer_of_a_function_that_ends_the_work_is_whole() -> None:
    text = "\n".join(f"line {number}" for number in range(100))

    @tool(effect="pure", max_result_bytes=700)
    def numbers() -> Done:
        """Count."""
        return Done(text)

    async with Greenroom(in_memory=True) as house:
        result = await house.run(Agent("ann", tools=[numbers], model=Played(lambda _: calls("numbers"))), "Count.")
    assert result.output == text


@pytest.mark.req("MA-60")
@pytest.mark.parametrize("reads", [True, False])
async def test_whom_an_agent_calls_decides_alone_about_its_own_tools(work: Path, reads: bool) -> None:
    @tool(effect="pure")
    def mine() -> str:
        """Only the one who calls has this."""
        ran.append("mine")
        return ""

    ran: list[str] = []
    reply = calls("read_code", file="hello.py") if reads else says("I know it by heart.")
    theirs = reporting(reply)
    reader = Agent("reader", tools=["read_code"], model=theirs)
    ask = calls("call_agent", agent_name="reader", instruction="Call mine, then read_code.")
    model = Played(in_order(ask, says("Read.")))
    async with Greenroom(in_memory=True, workspace=work) as house:
        result = await house.run(Agent("lead", tools=[mine], agents=[reader], model=model), "What does it say?")
        done = (await house.executed_tools(result.run_id)).counts
    assert {one.name for one in theirs.asked[0].tools}.isdisjoint({"mine", "call_agent"})
    assert "read_code" not in [one.name for one in model.asked[0].tools]
    assert ran == [], "nothing of the caller's is run for it"
    assert done.get("read_code", 0) == reads
    assert ("print('hello')" if reads else "by heart") in told(model.asked[1])[0]


async def test_what_a_project_forbids_is_forbidden_to_programs_too(work: Path) -> None:
    (work / ".greenroom").mkdir()
    (work / ".greenroom" / "permissions").write_text("deny path hello.py write\nallow command touch\n")
    model = reporting(calls("rewrite", file="hello.py", content=""), calls("execute_script", "c2", script="touch a"))
    agent = Agent("coder", toolsets=["edit", "command"], model=model)
    async with Greenroom(in_memory=True, workspace=work) as house:
        await house.run(agent, "Go.", approve=lambda _: False)
    assert "the project's rule" in told(model.asked[1])[0]
    assert "Denied by the person." in told(model.asked[2])[1], "what it allows counts for nothing"


@pytest.mark.parametrize("workspace", [True, False])
async def test_no_key_is_in_what_a_tool_says(work: Path, monkeypatch: pytest.MonkeyPatch, workspace: bool) -> None:
    key = "sk-planted-0123456789abcdefghij"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    @tool(effect="pure")
    def leak() -> str:
        """Say too much."""
        return f"the key is {key}"

    model = reporting(calls("leak"))
    async with Greenroom(in_memory=True, workspace=work if workspace else None) as house:
        result = await house.run(Agent("ann", tools=[leak], model=model), "Go.")
    assert result.output.startswith("the key is ")
    assert key not in str(model.asked)
