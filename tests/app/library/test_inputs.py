"""What a run is given: images and files, limits of its own, and instructions that depend on it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from greenroom import (
    Agent,
    Failed,
    Finished,
    Greenroom,
    Media,
    ModelCard,
    ModelRequest,
    ModelTextDelta,
    RefusedError,
    RunContext,
    RunLimits,
    ToolCallStarted,
    WorldFault,
    tool,
)
from greenroom.app.conversation.attachments import MAX_ATTACHED_BYTES
from greenroom.core.base.ids import TEAM_BUDGET, TeamId
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says
from tests.docs.provider import provider
from tests.e2e.terminal import environment
from tests.fake_openai import answers as fake

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PDF = b"%PDF-1.4\n\xff\xfe\0"
SEEING = ModelCard(output=1000, images=True, files=True)


def seeing(model: Played) -> Played:
    model.card = SEEING
    return model


@pytest.fixture(name="picture")
def _picture(tmp_path: Path) -> Path:
    path = tmp_path / "x.png"
    path.write_bytes(PNG)
    return path


async def test_an_image_goes_to_the_model_in_every_turn_of_the_run(picture: Path) -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look closer."""
        return "A cat."

    model = seeing(Played(in_order(calls("look"), says("A cat."))))
    async with Greenroom(in_memory=True) as greenroom:
        agent = Agent("guide", tools=[look], model=model)
        assert (await greenroom.run(agent, "What is this?", attachments=[str(picture)])).output == "A cat."
    expected = Media(media_type="image/png", data=PNG, name="x.png")
    for request in model.asked:
        (question,) = [message for message in request.messages if message.role == "user"]
        assert (question.content, question.media) == ("What is this?", (expected,))


async def test_bytes_are_attached_to_a_message_and_stay_in_the_conversation() -> None:
    model = seeing(Played(lambda _: says("Yes.")))
    async with Greenroom(in_memory=True) as greenroom, greenroom.chat(Agent("guide", model=model)) as conversation:
        await conversation.send("A cat?", attachments=[Media(media_type="image/png", data=PNG)])
        await conversation.send("Sure?")
        await conversation.send("And this?", attachments=[Media(media_type="application/pdf", data=PDF)])
        assert [turn.prompt for turn in await conversation.turns()] == ["A cat?", "Sure?", "And this?"]
    asked = [message for message in model.asked[-1].messages if message.role == "user"]
    assert [[media.data for media in message.media] for message in asked] == [[PNG], [], [PDF]]


async def test_a_text_file_becomes_part_of_the_prompt_of_any_model(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Tea at five.", "utf-8")
    model = Played(lambda _: says("At five."))
    async with Greenroom(in_memory=True) as greenroom:
        await greenroom.run(Agent("guide", model=model), "When?", attachments=[tmp_path / "notes.md"])
        assert (await greenroom.runs())[0].text == "When?"
    message = model.asked[0].messages[-1]
    assert message.media == ()
    assert "notes.md" in message.content
    assert "Tea at five." in message.content
    assert message.content.endswith("When?")


def write_files(folder: Path) -> None:
    (folder / "x.png").write_bytes(PNG)
    (folder / "report.pdf").write_bytes(PDF)
    with (folder / "large.bin").open("wb") as file:
        file.truncate(MAX_ATTACHED_BYTES + 1)


@pytest.mark.parametrize(
    ("attached", "why"),
    [
        ("x.png", r"fake:m takes no images, so x\.png cannot be attached"),
        ("report.pdf", r"fake:m takes no files of this kind, so report\.pdf"),
        ("missing.png", r"missing\.png cannot be attached: No such file"),
        ("https://example.org/x.png", "is not a file. Download it first"),
        ("large.bin", r"The attachments have 20\.0 MB; at most 20 MB"),
    ],
)
async def test_what_cannot_be_attached_is_refused_before_anything_starts(
    attached: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    model = Played(lambda _: says("Yes."))
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match=why):
            await greenroom.run(Agent("guide", model=model), "What is this?", attachments=[attached])
        assert await greenroom.runs() == []
    assert model.asked == []


async def test_an_image_is_reserved_with_what_it_counts_at_most(picture: Path) -> None:
    model = seeing(Played(lambda _: says("A cat.")))
    async with Greenroom(in_memory=True) as greenroom:
        agent = Agent("guide", model=model)
        with pytest.raises(RefusedError, match="limit"):
            await greenroom.run(agent, "What?", attachments=[picture], limits=RunLimits(tokens=SEEING.image_tokens))
        limits = RunLimits(tokens=SEEING.image_tokens + 5000)
        assert (await greenroom.run(agent, "What?", attachments=[picture], limits=limits)).output == "A cat."


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_small_files_are_reserved_by_their_size(count: int) -> None:
    model = Played(lambda _: says("A report."))
    model.card = ModelCard(output=1000, window=200_000, images=True, files=True)
    files = [Media(media_type="application/pdf", data=PDF, name=f"{number}.pdf") for number in range(count)]
    limits = RunLimits(tokens=count * (model.card.image_tokens + 1000) + 5000)
    async with Greenroom(in_memory=True) as greenroom:
        agent = Agent("guide", model=model)
        assert (await greenroom.run(agent, "What?", attachments=files, limits=limits)).output == "A report."


async def test_large_files_are_reserved_as_one_window_together() -> None:
    model = seeing(Played(lambda _: says("Reports.")))
    files = [Media(media_type="application/pdf", data=PDF + bytes(SEEING.window)) for _ in range(2)]
    async with Greenroom(in_memory=True) as greenroom:
        agent = Agent("guide", model=model)
        with pytest.raises(RefusedError, match="limit"):
            await greenroom.run(agent, "What?", attachments=files, limits=RunLimits(tokens=SEEING.window))
        limits = RunLimits(tokens=SEEING.window + 5000)
        assert (await greenroom.run(agent, "What?", attachments=files, limits=limits)).output == "Reports."


async def test_images_that_no_provider_counted_make_a_conversation_short_in_time() -> None:
    model = Played(lambda _: (ModelTextDelta(text="Yes."), Finished()))
    model.card = ModelCard(output=1000, window=40_000, images=True)
    async with Greenroom(in_memory=True) as greenroom, greenroom.chat(Agent("guide", model=model)) as conversation:
        for number in range(9):
            await conversation.send(
                "And this?", attachments=[Media(media_type="image/png", data=PNG + bytes([number]))]
            )
    images = [sum(len(message.media) for message in request.messages) for request in model.asked]
    assert max(images) * model.card.image_tokens < model.card.window, images


async def test_images_of_a_new_message_make_a_conversation_short_before_they_are_sent() -> None:
    model = Played(lambda request: says("Summed up." if request.purpose.skill == "compact" else "Yes."))
    model.card = ModelCard(output=1000, window=40_000, images=True)
    images = [Media(media_type="image/png", data=PNG + bytes([number])) for number in range(4)]
    assert len(images) * model.card.image_tokens < model.card.window
    async with Greenroom(in_memory=True) as greenroom, greenroom.chat(Agent("guide", model=model)) as conversation:
        for _ in range(2):
            await conversation.send("word " * 6_000)
        assert (await conversation.send("And these?", attachments=images)).output == "Yes."
    assert [request.purpose.skill for request in model.asked] == ["converse", "converse", "compact", "converse"]
    assert [len(message.media) for message in model.asked[-1].messages if message.media] == [len(images)]


PROGRAM = '''
import os, signal, sys
from pathlib import Path
from greenroom import Agent, tool

@tool(effect="pure")
def look() -> str:
    """Look closer."""
    if not Path("second").exists():
        Path("second").touch()
        Path("x.png").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return "A cat."

guide = Agent("guide", tools=[look], model="openai:gpt-4o")
given = {"resume": "last"} if Path("second").exists() else {"text": "What is this?", "attachments": ["x.png"]}
print(guide.run_sync(**given).output)
'''


def test_a_killed_run_sends_its_image_again(tmp_path: Path, picture: Path) -> None:
    bodies: list[Mapping[str, Any]] = []

    def play(body: Mapping[str, Any], _: int) -> fake.Answer:
        bodies.append(body)
        done = any(message["role"] == "tool" for message in body["messages"])
        return fake.Answer(text="A cat.") if done else fake.Answer(calls=(fake.Call(name="look", arguments={}),))

    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    with provider(play) as address:
        lives = [
            subprocess.run(
                [sys.executable, "program.py"],
                env=environment(tmp_path, OPENAI_API_KEY="sk-own", OPENAI_BASE_URL=address),
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            for _ in range(2)
        ]
    assert [life.returncode for life in lives] == [-9, 0], lives[1].stderr
    assert lives[1].stdout.strip() == "A cat."
    assert not picture.exists(), "the stored copy was sent, not the file"
    for body in bodies:
        text, image = next(message["content"] for message in body["messages"] if message["role"] == "user")
        assert text == {"type": "text", "text": "What is this?"}
        assert image["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert len(bodies) == 2


# ------------------------------------------------------------------------------------------------------- limits


async def test_a_run_has_limits_of_its_own_and_resumes_with_higher_ones() -> None:
    agent = Agent("guide", model=Played(lambda _: says("Yes.")))
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(RefusedError) as raised:
            await greenroom.run(agent, "Well?", limits=RunLimits(cost=0.000_001))
        assert raised.value.rejection.code == "limit"
        again = await greenroom.resume(agent, raised.value.run_id, limits=RunLimits(cost=1, turns=3))
        assert again.output == "Yes."
        assert (await greenroom.run(agent, "Well?")).output == "Yes.", "other runs are not limited"


async def test_each_limit_counts_and_the_others_stay_those_of_the_greenroom() -> None:
    agent = Agent("guide", model=Played(lambda _: says("Yes.")))
    async with Greenroom(in_memory=True, max_tokens=500_000) as greenroom:
        result = await greenroom.run(agent, "Well?", limits=RunLimits(cost=0.5, seconds=60, steps=9))
        limits = (await greenroom.runtime.state(result.run_id)).budgets[TEAM_BUDGET].limits
    assert (limits.money, limits.tokens, limits.millis, limits.steps) == (500_000, 500_000, 60_000, 9)


async def test_a_limit_of_turns_makes_the_agent_answer() -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look."""
        return "Nothing."

    def play(request: ModelRequest) -> Answer:
        return says("Enough.") if request.tool_choice == "none" else calls("look", f"c{len(request.messages)}")

    model = Played(play)
    async with Greenroom(in_memory=True) as greenroom:
        agent = Agent("guide", tools=[look], model=model)
        assert (await greenroom.run(agent, "Well?", limits=RunLimits(turns=2))).output == "Enough."
    assert len(model.asked) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("cost", value) for value in (-0.1, float("nan"), float("inf"), "5", True)),
        *(("seconds", value) for value in (-1, float("nan"), "60")),
        *((name, value) for name in ("tokens", "steps") for value in (-1, 2.5, "5", 10**13, True)),
        *(("turns", value) for value in (0, 1.5, 10**7)),
    ],
)
def test_an_impossible_limit_is_refused(name: str, value: object) -> None:
    make: Callable[..., RunLimits] = RunLimits
    with pytest.raises(WorldFault, match=f"^{re.escape(repr(value))} is not a valid limit `{name}`. It must be a "):
        make(**{name: value})


# ------------------------------------------------------------------------------------------------- instructions


@dataclass
class Person:
    name: str


def greet(run: RunContext[Person]) -> str:
    return f"Call the person {run.context.name}. They ask about {run.text}"


async def greet_later(run: RunContext[None]) -> str:
    return f"You are {run.agent}."


def system(request: ModelRequest) -> str:
    return request.messages[0].content


async def test_instructions_depend_on_the_prompt_and_the_context() -> None:
    clerk = Agent("clerk", greet_later, model=(clerk_model := Played(lambda _: says("Here."))))
    model = Played(in_order(calls("call_agent", agent_name="clerk", instruction="Well?"), says("Yes.")))
    agent = Agent("guide", greet, agents=[clerk], model=model)
    async with Greenroom(in_memory=True) as greenroom:
        await greenroom.run(agent, "tea", context=Person("Ann"))
        await greenroom.run(agent, "milk", context=Person("Bob"))
    assert "Call the person Ann. They ask about tea" in system(model.asked[0])
    assert "Call the person Bob. They ask about milk" in system(model.asked[2])
    assert "You are clerk." in system(clerk_model.asked[0])


async def test_a_resumed_run_keeps_the_instructions_that_its_log_holds() -> None:
    names = iter(["Ann", "Bob"])
    model = Played(in_order((Failed(kind="auth", why="No key."),), says("Yes.")))
    agent = Agent("guide", lambda _: f"Call them {next(names)}.", model=model)
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault) as raised:
            await greenroom.run(agent, "Well?")
        await greenroom.resume(agent, raised.value.run_id)
        state = await greenroom.runtime.state(TeamId(raised.value.run_id))
    assert ["Call them Ann." in system(request) for request in model.asked] == [True, True]
    assert next(iter(state.agents.values())).spec.prompt == "Call them Ann."


async def test_each_message_of_a_conversation_has_its_instructions() -> None:
    model = Played(lambda _: says("Yes."))
    agent = Agent("guide", lambda run: f"They say: {run.text}", model=model)
    async with Greenroom(in_memory=True) as greenroom, greenroom.chat(agent) as conversation:
        for text in ("one", "two", "two"):
            await conversation.send(text)
    assert [system(request).split("They say: ")[1].split()[0] for request in model.asked] == ["one", "two", "two"]


async def test_instructions_that_are_no_text_are_refused() -> None:
    def nothing(run: RunContext[Any]) -> Any:
        return run.context

    agent = Agent("guide", nothing, model=Played(lambda _: says("Yes.")))
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match="must be a text, not NoneType"):
            await greenroom.run(agent, "Well?")
        assert await greenroom.runs() == []


async def test_a_function_for_instructions_that_fails_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def look_up(run: RunContext[Any]) -> str:
        return str(run.context["name"])

    agent = Agent("guide", look_up, model=Played(lambda _: says("Yes.")))
    why = r"The function `.*look_up` for the instructions of 'guide' failed: KeyError: 'name'\.$"
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match=why) as raised:
            await greenroom.run(agent, "Well?", context={})
        async with greenroom.chat(agent, context={}) as conversation:
            with pytest.raises(WorldFault, match=why):
                await conversation.send("Well?")
        assert await greenroom.runs() == []
    assert isinstance(raised.value.__cause__, KeyError)
    assert not caplog.records


# ------------------------------------------------------------------------------------------------ called agents


@pytest.mark.parametrize(
    ("call", "instruction"),
    [
        (calls("call_agent", agent_name="clerk", instruction="Look."), "Look."),
        (calls("clerk", question="Look."), "Look."),
        (calls("clerk", what="tea", many=2), '{"what":"tea","many":2}'),
    ],
)
async def test_a_call_of_an_agent_is_told_before_the_agent_speaks(call: Answer, instruction: str) -> None:
    clerk = Agent("clerk", model=Played(lambda _: says("Here.")))
    lead = Agent("lead", agents=[clerk], model=Played(in_order(call, says("Done."))))
    async with Greenroom(in_memory=True) as greenroom:
        events = [event async for event in lead.stream("Well?", greenroom=greenroom)]
    names = ["ToolCallStarted", "TextDelta", "ToolCallFinished", "TextDelta", "RunResult"]
    assert [type(event).__name__ for event in events] == names
    arguments = {"agent_name": "clerk", "instruction": instruction}
    assert events[0] == ToolCallStarted(agent="lead", tool="call_agent", arguments=arguments, call_id="c1")
