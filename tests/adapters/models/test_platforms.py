"""Platforms: conversations, what is too long for one, and all of them by name."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.adapters.models import platforms
from greenroom.adapters.models.platforms import (
    BasePlatform,
    LLMContext,
    fit_message,
    shorten_history,
)
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Retried,
    ToolCall,
    Usage,
)


class Talker:
    """Answers in order; the last answer again and again."""

    def __init__(
        self, name: str = "openai:gpt-4o", *answers: Sequence[ModelEvent], card: ModelCard | None = None
    ) -> None:
        self.name = name
        self.card = card or ModelCard()
        self.answers = list(answers) or [said("Good.")]
        self.asked: list[ModelRequest] = []

    def price(self, read: int, written: int) -> int | None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        for event in answer:
            yield event


def said(*texts: str) -> list[ModelEvent]:
    return [*(ModelTextDelta(text=text) for text in texts), Finished()]


def make_any(provider: str, model: str) -> Model:
    return Talker(f"{provider}:{model}")


LOST = Failed(kind="network", why="The line is dead.")


class OpenAI(BasePlatform):
    """As the registry makes it of a provider."""

    platform = "openai"


def talking_to(model: Talker, context: LLMContext | None = None) -> BasePlatform:
    platform = OpenAI(lambda _: model, context=context)
    platform.set_model_name("gpt-4o")
    return platform


@pytest.mark.req("AG-124")
async def test_a_platform_is_a_conversation() -> None:
    model = Talker("openai:gpt-4o", said("Hel", "lo."), said("Fine."))
    platform = talking_to(model)
    platform.set_system_prompt("Be kind.")
    assert await platform.chat_until_success("Hi") == "Hello."
    assert await platform.chat_until_success("How are you?") == "Fine."
    assert [(one.role, one.content) for one in model.asked[1].messages] == [
        ("system", "Be kind."),
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "How are you?"),
    ]
    first, second = (request.messages for request in model.asked)
    assert all(old is new for old, new in zip(first, second, strict=False))
    assert (platform.name(), platform.platform_name()) == ("gpt-4o", "openai")
    platform.reset()
    platform.set_system_prompt("")
    await platform.chat_until_success("Again")
    assert [one.content for one in model.asked[2].messages] == ["Again"]


@pytest.mark.req("MAS-255")
async def test_a_question_can_be_asked_in_another_conversation() -> None:
    model = Talker("ollama:qwen3", said("Four."))
    platform, other = talking_to(model), LLMContext(context_size=1)
    assert await platform.call("2 + 2?", other) == "Four."
    assert await platform.call("3 + 1?", other) == "Four."
    assert [one.content for one in other.get_history()] == ["3 + 1?", "Four."]
    assert platform.context.get_history() == ()


async def test_a_conversation_without_a_memory_still_asks() -> None:
    model = Talker("openai:x", said("Yes."))
    platform = talking_to(model, LLMContext(context_size=0))
    assert [await platform.chat_until_success(text) for text in ("One?", "Two?")] == ["Yes.", "Yes."]
    assert [[one.content for one in request.messages] for request in model.asked] == [["One?"], ["Two?"]]


async def test_what_came_before_a_retry_is_void() -> None:
    events: list[ModelEvent] = [
        ModelTextDelta(text="Hal"),
        Retried(attempt=2, wait=0, failed=LOST),
        ModelReasoningDelta(text="hm"),
        *said("Whole."),
    ]
    assert await talking_to(Talker("openai:x", events)).chat_until_success("?") == "Whole."


@pytest.mark.req("AG-185")
@pytest.mark.parametrize("events", [said(), said(""), said(" \n")])
async def test_an_empty_answer_is_an_empty_text_and_a_warning(
    events: list[ModelEvent], caplog: pytest.LogCaptureFixture
) -> None:
    assert await talking_to(Talker("openai:x", events)).chat_until_success("?") == ""
    assert "openai:x gave an empty answer" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([ModelTextDelta(text="Ha"), Usage(input=5, output=1), LOST], "openai:x: The line is dead."),
        ([Usage()], "before the end"),
    ],
)
async def test_a_fault_is_raised_and_the_question_counts_as_not_asked(events: list[ModelEvent], words: str) -> None:
    model = Talker("openai:x", events, said("Now."))
    platform = talking_to(model)
    with pytest.raises(WorldFault, match=words) as fault:
        await platform.chat_until_success("First")
    assert fault.value.spent in {Amounts(tokens=6), Amounts()}
    assert await platform.chat_until_success("Second") == "Now."
    assert [one.content for one in model.asked[1].messages] == ["Second"]


async def test_two_questions_at_once_are_asked_one_after_the_other() -> None:
    class Slow(Talker):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.asked.append(request)
            await asyncio.sleep(0)
            yield ModelTextDelta(text=f"to {request.messages[-1].content}")
            yield Finished()

    platform = talking_to(Slow())
    assert await asyncio.gather(*(platform.chat_until_success(text) for text in "ab")) == ["to a", "to b"]
    assert [one.content for one in platform.context.get_history()] == ["a", "to a", "b", "to b"]


async def test_an_answer_is_no_longer_than_the_model_can() -> None:
    model = Talker("openai:x", card=ModelCard(output=100))
    await talking_to(model).chat_until_success("?")
    assert model.asked[0].max_output == 100


async def test_without_a_model_nobody_answers() -> None:
    platform = OpenAI(lambda _: Talker())
    assert platform.name() == ""
    with pytest.raises(WorldFault, match=r"'openai' has no model. Choose one with `set_model_name`"):
        await platform.chat_until_success("?")


@pytest.mark.req("AG-124")
def test_a_group_gives_the_first_model_that_the_platform_serves() -> None:
    groups = {"mixed": ["groq:a", "openai:b", "openai:c"], "other": ["groq:a"]}
    platform = OpenAI(lambda name: Talker(f"openai:{name}"), groups=groups)
    platform.set_model_group("mixed")
    assert platform.name() == "b"
    for group in ("other", "unknown"):
        with pytest.raises(WorldFault, match=f"The group '{group}' has no model of 'openai'"):
            platform.set_model_group(group)


@pytest.mark.req("AG-131")
async def test_files_are_shown_where_the_model_can_see_them(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png")
    (tmp_path / "b.pdf").write_bytes(b"pdf")
    model = Talker("openai:x", card=ModelCard(images=True, files=True))
    platform = talking_to(model)
    assert platform.can_upload
    assert await platform.upload_files([tmp_path / "a.png", str(tmp_path / "b.pdf")])
    await platform.chat_until_success("What is this?")
    await platform.chat_until_success("And?")
    shown = model.asked[0].messages[0].media
    assert [(one.media_type, one.data, one.name) for one in shown] == [
        ("image/png", b"png", "a.png"),
        ("application/pdf", b"pdf", "b.pdf"),
    ]
    assert model.asked[1].messages[-1].media == ()


@pytest.mark.req("AG-131")
@pytest.mark.parametrize(
    ("card", "can", "name"),
    [
        (ModelCard(), False, "a.png"),
        (ModelCard(images=True), True, "a.pdf"),
        (ModelCard(files=True), True, "a.png"),
        (ModelCard(images=True), True, "a.unknownkind"),
    ],
)
async def test_a_file_that_cannot_be_shown_is_not_uploaded(
    card: ModelCard, can: bool, name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"x")
    model = Talker("openai:x", card=card)
    platform = talking_to(model)
    assert platform.can_upload is can
    assert not await platform.upload_files([tmp_path / name])
    await platform.chat_until_success("?")
    assert model.asked[0].messages[0].media == ()


async def test_a_file_that_is_missing_or_too_large_is_told_and_none_is_uploaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"four")
    platform = talking_to(Talker("openai:x", card=ModelCard(images=True)))
    assert not await platform.upload_files([tmp_path / "a.png", tmp_path / "none.png"])
    monkeypatch.setattr(platforms, "MAX_FILE_BYTES", 3)
    assert not await platform.upload_files([tmp_path / "a.png"])
    assert "none.png" in caplog.text
    assert "is larger than 3 bytes" in caplog.text


async def test_files_stay_for_the_next_question_when_nobody_answered(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png")
    model = Talker("openai:x", [LOST], said("A cat."), card=ModelCard(images=True))
    platform = talking_to(model)
    assert await platform.upload_files([tmp_path / "a.png"])
    with pytest.raises(WorldFault):
        await platform.chat_until_success("?")
    await platform.chat_until_success("?")
    assert len(model.asked[1].messages[-1].media) == 1
    assert await platform.upload_files([tmp_path / "a.png"])
    platform.reset()
    await platform.chat_until_success("?")
    assert model.asked[2].messages[-1].media == ()


SYSTEM = ChatMessage(role="system", content="Be kind.")


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def answer(text: str, *calls: str) -> ChatMessage:
    made = tuple(ToolCall(call_id=call, name="look", arguments={}) for call in calls)
    return ChatMessage(role="assistant", content=text, calls=made)


def result(call: str) -> ChatMessage:
    return ChatMessage(role="tool", content="seen", call_id=call)


def context(size: int, *messages: ChatMessage) -> LLMContext:
    made = LLMContext(context_size=size)
    made.set_history(messages)
    return made


@pytest.mark.req("MAS-256")
def test_messages_are_added_and_taken_back() -> None:
    talk = LLMContext(context_size=3)
    assert talk.remove_last_message() is None
    first, second = user("1"), answer("2")
    talk.add_message(first)
    talk.add_message(second)
    assert talk.get_history() == (first, second)
    assert talk.remove_last_message() is second
    talk.set_history([SYSTEM, first])
    assert talk.get_history()[0] is SYSTEM
    talk.clear()
    assert talk.get_history() == ()


@pytest.mark.req("MAS-256")
def test_the_last_turns_stay_and_the_system_message_too() -> None:
    said = [SYSTEM, *(one for turn in range(4) for one in (user(f"q{turn}"), answer(f"a{turn}")))]
    talk = context(2, *said)
    talk.trim_history()
    assert talk.get_history() == (SYSTEM, *said[5:])
    assert all(kept is old for kept, old in zip(talk.get_history()[1:], said[5:], strict=True))
    talk.trim_history()
    assert len(talk.get_history()) == 5


def test_calls_and_their_results_stay_together_when_a_person_breaks_in() -> None:
    said = [user("q"), answer("", "c1", "c2"), result("c1"), user("hurry"), result("c2"), answer("a")]
    talk = context(1, user("old"), answer("x"), *said)
    talk.trim_history()
    assert talk.get_history() == tuple(said)


CALLS = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=3)


@st.composite
def talks(draw: st.DrawFn) -> list[ChatMessage]:
    """Turns with any number of calls, all answered, with people breaking in anywhere."""
    messages: list[ChatMessage] = draw(st.sampled_from([[], [SYSTEM]])).copy()
    for turn in range(draw(st.integers(0, 6))):
        messages.append(user(f"q{turn}"))
        for round_ in range(draw(st.integers(0, 2))):
            calls = [f"{turn}.{round_}.{call}" for call in draw(CALLS)]
            messages.append(answer("", *calls))
            for call in calls:
                messages += [user("well?")] * draw(st.integers(0, 1))
                messages.append(result(call))
        messages.append(answer(f"a{turn}"))
    return messages


@given(talks(), st.integers(0, 5))
def test_what_is_left_is_the_end_and_every_result_has_its_call(messages: list[ChatMessage], size: int) -> None:
    talk = context(size, *messages)
    talk.trim_history()
    left = [one for one in talk.get_history() if one.role != "system"]
    spoken = [one for one in messages if one.role != "system"]
    assert left == (spoken[-len(left) :] if left else [])
    assert [one for one in talk.get_history() if one.role == "system"] == [one for one in messages if one is SYSTEM]
    called = {call.call_id for one in left for call in one.calls}
    assert {one.call_id for one in left if one.role == "tool"} == called
    assert not left or left[0].role == "user"
    before = talk.get_history()
    talk.trim_history()
    assert talk.get_history() == before


LONG = "".join(f"line {number}\n" for number in range(1000))


@pytest.mark.req("AG-187")
def test_a_long_message_is_a_file_first_and_cut_only_where_no_file_can_be_shown() -> None:
    small = ModelCard(window=1000)
    said, shown = fit_message(LONG, ModelCard(window=1000, files=True))
    assert shown[0].data == LONG.encode()
    assert said.startswith("The whole message is in the file message.txt")
    cut, none = fit_message(LONG, small)
    assert none == ()
    assert cut.startswith("line 0\n")
    assert cut.endswith("line 999\n")
    assert "characters are left out here" in cut
    assert len(cut) < 1600
    assert fit_message("short", small) == ("short", ())


def left(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def talked(*answers: str, files: bool = False) -> tuple[BasePlatform, Talker]:
    """A platform with which two things were said."""
    model = Talker("openai:gpt-4o", *(said(one) for one in ("One.", "Two.", *answers)))
    model.card = ModelCard(files=files)
    platform = talking_to(model)
    platform.set_system_prompt("Be kind.")
    await platform.chat_until_success("First?")
    await platform.chat_until_success("Second?")
    return platform, model


@pytest.mark.req("AG-15", "AG-16", "AG-18", "AG-23", "AG-39")
async def test_where_files_can_be_shown_the_history_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    platform, model = await talked("Going on.", files=True)
    told: list[str] = []
    prompt = await shorten_history(platform, notify=told.append)
    assert "history.md" in prompt
    assert told == ["before_history_clear", "after_history_clear"]
    assert left(tmp_path) == [], "the file is gone"
    await platform.chat_until_success(prompt)
    system, message = model.asked[-1].messages
    assert system.content == "Be kind.", "the system prompt is in force"
    (media,) = message.media
    assert media.data.decode() == "## user\nFirst?\n\n## assistant\nOne.\n\n## user\nSecond?\n\n## assistant\nTwo."


@pytest.mark.req("AG-17", "AG-18")
async def test_a_file_that_cannot_be_shown_costs_a_summary_and_no_history(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def refuses(_: BasePlatform, __: Sequence[str | Path]) -> bool:
        return False

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(BasePlatform, "upload_files", refuses)
    platform, model = await talked("All of it.", files=True)
    assert await shorten_history(platform) == "What was said before, in short:\nAll of it."
    assert [one.content for one in model.asked[-1].messages][1:4] == ["First?", "One.", "Second?"]
    assert left(tmp_path) == []


@pytest.mark.req("AG-19", "AG-20", "AG-21", "AG-22")
async def test_where_none_can_be_shown_it_is_summed_up_and_an_empty_summary_has_a_placeholder() -> None:
    platform, _ = await talked("In short.")
    told: list[str] = []
    assert await shorten_history(platform, notify=told.append) == "What was said before, in short:\nIn short."
    assert told == ["before_history_clear", "after_history_clear"]
    assert platform.context.get_history() == ()
    platform, _ = await talked("")
    assert "Nothing could be said" in await shorten_history(platform)
