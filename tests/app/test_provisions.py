"""What one invocation asks models with: made when it is needed, recorded when that is wanted, tidied up after."""

from pathlib import Path

import pytest

from greenroom.app.conversation.capability_names import ASK
from greenroom.app.conversation.chat import fail_idle_tasks, list_team_models
from greenroom.app.conversation.factories import make_conversation_factories
from greenroom.app.conversation.start import ASSISTANT, create_single_task_team, select_participants
from greenroom.app.model_registry import ModelSession
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TaskId
from greenroom.core.ports.model import Models
from greenroom.testing.scripted import Cue, ScriptedModel, ScriptedReply

HELLO = (Cue(reply=ScriptedReply(text="Hello.")),)


@pytest.fixture(autouse=True)
def _nobodys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def provisions(tmp_path: Path, **environ: str) -> ModelSession:
    return ModelSession(environ, lambda: tmp_path)


async def answer(home: Path, models: Models, question: str = "Who?") -> tuple[str, str]:
    """How the only task stands, and why."""
    runtime = await Runtime.open(home, capability_factories=make_conversation_factories(models, str))
    try:
        cast = select_participants(ASSISTANT, {}, str, model="script")
        team = await create_single_task_team(runtime, ASK, cast, question, limits=Limits())
        assert list_team_models(await runtime.state(team)) == ("script",)
        await runtime.start(team)
        await runtime.wait(team, TaskId("t1"))
        await fail_idle_tasks(runtime, team)
        stands = await runtime.status(team, TaskId("t1"))
        return stands.state, stands.reason
    finally:
        await runtime.close()


async def test_an_answer_ends_the_task(tmp_path: Path) -> None:
    assert await answer(tmp_path, ScriptedModel(HELLO)) == ("finished", "Hello.")


async def test_a_failed_step_ends_the_task_with_its_error(tmp_path: Path) -> None:
    word, why = await answer(tmp_path, ScriptedModel(()))
    assert word == "failed"
    assert why.startswith("The script has no reply for 'assistant'")


async def test_a_script_is_recorded_and_played(tmp_path: Path) -> None:
    file = tmp_path / "tape.jsonl"
    first = provisions(tmp_path)
    first.use_recording(file, None)
    assert await answer(tmp_path / "a", first.use_script(ScriptedModel(HELLO))) == ("finished", "Hello.")
    await first.close()
    again = provisions(tmp_path)
    again.use_recording(None, file)
    assert again.resolve_alias("whatever") == "scripted:script"
    left = again.find_unused()
    assert left is not None
    assert (left.count, left.models) == (1, ("scripted:script",))
    assert await answer(tmp_path / "b", again) == ("finished", "Hello.")
    assert again.find_unused() is None


async def test_a_recording_of_nothing_is_taken_away(tmp_path: Path) -> None:
    file = tmp_path / "tape.jsonl"
    one = provisions(tmp_path)
    one.use_recording(file, None)
    assert file.exists()
    await one.close()
    assert not file.exists()


def test_the_name_of_a_single_model_is_settled_and_that_of_a_group_stays(tmp_path: Path) -> None:
    (tmp_path / ".greenroom").mkdir()
    config = 'model = "strong"\nstrong = "openai:big"\n[groups.all]\nmodels = ["openai:big", "openai:small"]\n'
    (tmp_path / ".greenroom" / "config.toml").write_text(config)
    one = provisions(tmp_path, OPENAI_API_KEY="sk-0123456789")
    assert [one.resolve_alias(name) for name in ("", "strong", "all", "xai:grok")] == [
        "openai:big",
        "openai:big",
        "all",
        "xai:grok",
    ]
    assert one.get_model("").name == "openai:big"


def test_flags_count_more_than_all_else(tmp_path: Path) -> None:
    one = provisions(tmp_path, GREENROOM_MAX_COST="3")
    assert one.loaded_settings.settings.limits.cost == 3
    one.set_flags({"limits.cost": "none", "limits.tokens": None})
    assert one.loaded_settings.settings.limits.cost is None


def test_a_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(WorldFault, match="current folder is gone"):
        _ = ModelSession().loaded_settings
