"""A long conversation with a platform begins anew: with a file where files can be shown, else with a summary."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.adapters.models.platforms.base import BasePlatform
from greenroom.adapters.models.platforms.offload import shorten_history
from greenroom.core.ports.model import ModelCard
from tests.adapters.models.platforms.models import Talker, said
from tests.adapters.models.platforms.test_base import talking_to


def left(folder: Path) -> list[Path]:
    """What is in a folder."""
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
    prompt = await shorten_history(platform, tell=told.append)
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
    assert await shorten_history(platform, tell=told.append) == "What was said before, in short:\nIn short."
    assert told == ["before_history_clear", "after_history_clear"]
    assert platform.context.get_history() == ()
    platform, _ = await talked("")
    assert "Nothing could be said" in await shorten_history(platform)
