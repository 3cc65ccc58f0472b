"""What one invocation asks models with: made when it is needed, recorded when that is wanted, tidied up after."""

from pathlib import Path

import pytest

from greenroom.app.conversation.chat import models_of, settle
from greenroom.app.conversation.kits import talk_kits
from greenroom.app.conversation.names import ASK
from greenroom.app.conversation.start import ASSISTANT, cast_of, found_alone
from greenroom.app.model_registry import Provisions
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TaskId
from greenroom.core.ports.model import Models
from greenroom.testing.scripted import Cue, Reply, ScriptedModel

HELLO = (Cue(reply=Reply(text="Hello.")),)


@pytest.fixture(autouse=True)
def _nobodys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def provisions(tmp_path: Path, **environ: str) -> Provisions:
    return Provisions(environ, lambda: tmp_path)


async def answer(home: Path, models: Models, question: str = "Who?") -> tuple[str, str]:
    """How the only task stands, and why."""
    runtime = await Runtime.open(home, kits=talk_kits(models, str))
    try:
        cast = cast_of(ASSISTANT, {}, str, model="script")
        team = await found_alone(runtime, ASK, cast, question, limits=Limits())
        assert models_of(await runtime.world(team)) == ("script",)
        await runtime.start(team)
        await runtime.wait(team, TaskId("t1"))
        await settle(runtime, team)
        stands = await runtime.stands(team, TaskId("t1"))
        return stands.word, stands.why
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
    first.tape(file, None)
    assert await answer(tmp_path / "a", first.around(ScriptedModel(HELLO))) == ("finished", "Hello.")
    await first.close()
    again = provisions(tmp_path)
    again.tape(None, file)
    assert again.settled("whatever") == "scripted:script"
    left = again.unused()
    assert left is not None
    assert (left.count, left.models) == (1, ("scripted:script",))
    assert await answer(tmp_path / "b", again) == ("finished", "Hello.")
    assert again.unused() is None


async def test_a_recording_of_nothing_is_taken_away(tmp_path: Path) -> None:
    file = tmp_path / "tape.jsonl"
    one = provisions(tmp_path)
    one.tape(file, None)
    assert file.exists()
    await one.close()
    assert not file.exists()


def test_the_name_of_a_single_model_is_settled_and_that_of_a_group_stays(tmp_path: Path) -> None:
    (tmp_path / ".greenroom").mkdir()
    config = 'model = "strong"\nstrong = "openai:big"\n[groups.all]\nmodels = ["openai:big", "openai:small"]\n'
    (tmp_path / ".greenroom" / "config.toml").write_text(config)
    one = provisions(tmp_path, OPENAI_API_KEY="sk-0123456789")
    assert [one.settled(name) for name in ("", "strong", "all", "xai:grok")] == [
        "openai:big",
        "openai:big",
        "all",
        "xai:grok",
    ]
    assert one.named("").name == "openai:big"


def test_flags_count_more_than_all_else(tmp_path: Path) -> None:
    one = provisions(tmp_path, GREENROOM_MAX_COST="3")
    assert one.loaded.settings.limits.cost == 3
    one.give({"limits.cost": "none", "limits.tokens": None})
    assert one.loaded.settings.limits.cost is None


def test_a_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(WorldFault, match="current folder is gone"):
        _ = Provisions().loaded
