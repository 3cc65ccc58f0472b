"""A conversation with a model of one provider."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from greenroom.adapters.models.platforms import base
from greenroom.adapters.models.platforms.base import BasePlatform, LLMContext
from greenroom.adapters.models.platforms.registry import built_in
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    Retried,
    TextDelta,
    Usage,
)
from tests.adapters.models.platforms.models import Talker, said

LOST = Failed(kind="network", why="The line is dead.")


def talking_to(model: Talker, context: LLMContext | None = None) -> BasePlatform:
    platform = built_in("openai")(lambda _: model, context=context)
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
        TextDelta(text="Hal"),
        Retried(attempt=2, wait=0, failed=LOST),
        ReasoningDelta(text="hm"),
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
        ([TextDelta(text="Ha"), Usage(input=5, output=1), LOST], "openai:x: The line is dead."),
        ([Usage()], "without an end"),
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
            yield TextDelta(text=f"to {request.messages[-1].content}")
            yield Finished()

    platform = talking_to(Slow())
    assert await asyncio.gather(*(platform.chat_until_success(text) for text in "ab")) == ["to a", "to b"]
    assert [one.content for one in platform.context.get_history()] == ["a", "to a", "b", "to b"]


async def test_an_answer_is_no_longer_than_the_model_can() -> None:
    model = Talker("openai:x", card=ModelCard(output=100))
    await talking_to(model).chat_until_success("?")
    assert model.asked[0].max_output == 100


async def test_without_a_model_nobody_answers() -> None:
    platform = built_in("vllm")(lambda _: Talker())
    assert platform.name() == ""
    with pytest.raises(WorldFault, match=r"'vllm' was given no model. Choose one with `set_model_name`"):
        await platform.chat_until_success("?")


@pytest.mark.req("AG-124")
def test_a_group_gives_the_first_model_that_the_platform_serves() -> None:
    groups = {"mixed": ["groq:a", "openai:b", "openai:c"], "other": ["groq:a"]}
    platform = built_in("openai")(lambda name: Talker(f"openai:{name}"), groups=groups)
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
    monkeypatch.setattr(base, "LARGEST_FILE", 3)
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
