"""Recorded, replayed and scripted models keep the contract of every model."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from greenroom.adapters.models.replay import Recorder, ReplayModel
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest
from greenroom.testing.conformance.models import ADD, AnswerPlan, Feature, ModelContract, collect_events, make_request
from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedModel, ScriptedReply
from tests.adapters.models.replay.players import Player, events


class TestScriptedModel(ModelContract):
    lacks: ClassVar[frozenset[Feature]] = frozenset({"reasoning", "usage", "finish", "fault"})

    @asynccontextmanager
    async def serve(self, plans: Mapping[str, AnswerPlan]) -> AsyncIterator[Model]:
        def reply(request: ModelRequest) -> ScriptedReply:
            plan = plans[request.messages[-1].content]
            calls = tuple(ScriptedCall(name=call.name, arguments=call.arguments) for call in plan.calls)
            return ScriptedReply(text=plan.text, calls=calls)

        yield ScriptedModel([Cue(reply=reply)])


class TestRecordingModel(ModelContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def serve(self, plans: Mapping[str, AnswerPlan]) -> AsyncIterator[Model]:
        player = Player({words: events(plan) for words, plan in plans.items()})
        with Recorder(self.folder / "tape.jsonl") as recorder:
            yield recorder.wrap(player)


class TestReplayModel(ModelContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def serve(self, plans: Mapping[str, AnswerPlan]) -> AsyncIterator[Model]:
        player = Player({words: events(plan) for words, plan in plans.items()})
        with Recorder(self.folder / "tape.jsonl") as recorder:
            model = recorder.wrap(player)
            for request in (make_request(words) for words in plans for _ in range(2)):
                await collect_events(model, request)
            if "more" in plans or "go on" in plans:
                await collect_events(model, later(plans))
        yield ReplayModel(self.folder / "tape.jsonl", name=player.name)


def later(plans: Mapping[str, AnswerPlan]) -> ModelRequest:
    """The second request of the suite's two conversations."""
    first = make_request()
    if "more" in plans:
        said = (ChatMessage(role="assistant", content="Hello."), *make_request("more").messages[1:])
    else:
        called = ChatMessage(role="assistant", content="", calls=(ADD,))
        result = ChatMessage(role="tool", content="3", call_id=ADD.call_id)
        said = (called, result, *make_request("go on").messages[1:])
    return evolve(first, messages=(*first.messages, *said))
