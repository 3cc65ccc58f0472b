"""The documented library: answers, streams, approvals, typed output, durable runs, conversations, cost."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenroom import (
    Agent,
    ApprovalRequest,
    Greenroom,
    ModelFault,
    RefusedError,
    RunResult,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    tool,
)
from tests.acceptance.kit import PRICES, Answer, Turns, call, rows, say, serve_model, surroundings, wait_until
from tests.acceptance.process import ROOT, Process


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's data folder, which a program finds by its environment."""
    home = tmp_path / "home"
    config = home / "config" / "greenroom" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(PRICES)
    for name, value in surroundings(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return home


def reach(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Lead the program to a model server."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@dataclass
class Fact:
    """What the agent is to find out."""

    city: str
    people: int


@tool(effect="pure")
def population(city: str) -> int:
    """How many people live in a city."""
    return {"Paris": 2_100_000}[city]


FINDS = (call("population", 1, city="Paris"), say('{"city": "Paris", "people": 2100000}'))


def test_an_agent_calls_a_function_and_answers_with_a_type(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_model(Turns(*FINDS)) as server:
        reach(monkeypatch, server.reach)
        result = Agent("guide", tools=[population], output_type=Fact).run_sync("How many in Paris?")
        messages = rows(server.requests[-1].body["messages"])
    assert result.output == Fact("Paris", 2_100_000)
    assert "2100000" in str([message["content"] for message in messages if message["role"] == "tool"])
    assert (result.usage.cost > 0, result.usage.tokens > 0) == (True, True)
    shown = Process(("cost", result.run_id, "--output-format", "json"), surroundings(home), home).end()
    assert shown.json["cost"] == result.usage.cost, "the command line knows the run"


@pytest.mark.usefixtures("home")
def test_an_answer_that_does_not_fit_goes_back_to_the_model_and_then_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_model(Turns(say("many"), say("7"))) as server:
        reach(monkeypatch, server.reach)
        assert Agent("guide", output_type=int).run_sync("How many?").output == 7
        assert server.asked == 2
    with serve_model(Turns(say("many"))) as server:
        reach(monkeypatch, server.reach)
        with pytest.raises(ModelFault):
            Agent("guide", output_type=int).run_sync("How many?")


async def test_a_stream_has_calls_results_text_and_the_result_last(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_model(Turns(call("population", 1, city="Paris"), say("Two million."))) as server:
        reach(monkeypatch, server.reach)
        async with Greenroom(home) as house:
            heard = [event async for event in house.stream(Agent("guide", tools=[population]), "How many?")]
    called = [event for event in heard if isinstance(event, ToolCallStarted)]
    returned = [event for event in heard if isinstance(event, ToolCallFinished)]
    assert [event.tool for event in called] == ["population"]
    assert [str(event.output) for event in returned] == ["2100000"]
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)) == "Two million."
    assert isinstance(heard[-1], RunResult)
    assert heard[-1].output == "Two million."


@pytest.mark.parametrize("answer", [True, False, "Not today."])
async def test_a_tool_that_asks_is_called_only_after_a_yes(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: bool | str
) -> None:
    paid: list[int] = []
    asked_about: list[str] = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return f"paid {amount}"

    def approve(asked: ApprovalRequest) -> bool | str:
        assert (asked.arguments, paid) == ({"amount": 5}, [])
        asked_about.append(asked.tool)
        return answer

    with serve_model(Turns(call("pay", 1, amount=5), say("Done."))) as server:
        reach(monkeypatch, server.reach)
        async with Greenroom(home) as house:
            result = await house.run(Agent("clerk", tools=[pay]), "Pay five.", approve=approve)
        told = str(server.requests[-1].body["messages"])
    assert (result.output, paid, asked_about) == ("Done.", [5] if answer is True else [], ["pay"])
    assert ("Not today." in told) == (answer == "Not today.")


async def test_a_conversation_remembers_also_in_another_house(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = Agent("guide")
    with serve_model([say("Hello."), say("Ann.")]) as server:
        reach(monkeypatch, server.reach)
        async with Greenroom(home) as house, house.chat(guide) as talk:
            assert (await talk.send("I am Ann.")).output == "Hello."
            name = talk.id
        async with Greenroom(home) as house, house.chat(guide, resume=name) as talk:
            assert (await talk.send("Who am I?")).output == "Ann."
            assert [turn.prompt for turn in await talk.turns()] == ["I am Ann.", "Who am I?"]
        assert "I am Ann." in str(server.requests[-1].body["messages"])


async def test_a_limit_of_a_program_holds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_model(say("Dear.")) as server:
        reach(monkeypatch, server.reach)
        async with Greenroom(home, max_cost=0.0001) as house:
            with pytest.raises(RefusedError):
                await house.run(Agent("guide"), "Well?")
        assert server.asked == 0


PROGRAM = """
import sys
from greenroom import Agent, tool

@tool
def pay(amount: int) -> str:
    "Pay an amount."
    with open("paid", "a") as file:
        file.write(f"{amount} ")
    return "paid"

words = {"resume": "last"} if sys.argv[1:] else {}
text = () if words else ("Pay twice.",)
result = Agent("clerk", tools=[pay]).run_sync(*text, **words)
print(result.output)
"""


def test_a_program_that_was_killed_goes_on_and_pays_nothing_twice(home: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    model = Turns(call("pay", 1, amount=1), call("pay", 2, amount=2), say("Paid."), hold=1)
    words = [sys.executable, str(tmp_path / "program.py")]
    with serve_model(model) as server:
        env = {**surroundings(home), **server.reach, "PYTHONPATH": str(ROOT / "src")}
        with subprocess.Popen(words, cwd=tmp_path, env=env) as process:
            wait_until(lambda: server.asked > 1)
            process.send_signal(signal.SIGKILL)
        model.release()
        again = subprocess.run([*words, "resume"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (0, "Paid.\n"), again.stderr
    assert (tmp_path / "paid").read_text() == "1 2 "
    assert server.asked == 4, "of three replies only the one that was cut off is asked for again"


def test_a_chat_at_the_command_is_kept(home: Path, tmp_path: Path) -> None:
    with serve_model([say("Hello."), say("Ann.")]) as server:
        around = surroundings(home, **server.reach)
        first = Process(("chat", "--output-format", "stream-json"), around, tmp_path, "I am Ann.\n").end()
        assert first.code == 0, first.err
        kinds = [json.loads(line)["type"] for line in first.out.splitlines()]
        assert (kinds[0], kinds[-1]) == ("init", "result")
        again = Process(("chat", "--resume", "last"), around, tmp_path, "Who am I?\n").end()
        assert (again.code, "Ann." in again.out) == (0, True)
        assert "I am Ann." in str(server.requests[-1].body["messages"])


@pytest.mark.usefixtures("home")
def test_usage_is_what_the_provider_says(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    with serve_model(Answer(text="Hm.", usage=usage)) as server:
        reach(monkeypatch, server.reach)
        result = Agent("guide").run_sync("Well?")
    assert (result.usage.tokens, result.usage.cost) == (1100, 0.002)
