"""A server of a real home and a real repository, whose model follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from fastapi import FastAPI

from greenroom.app.capability_factories import make_capability_factories
from greenroom.app.context import AppContext
from greenroom.app.model_registry import ModelSession
from greenroom.app.runs.checks import plan_project_checks
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import home_folder
from greenroom.core.base.ids import TeamId
from greenroom.core.state.approval import ApprovalRequested
from greenroom.core.state.task import TaskEnded
from greenroom.http.access import AccessFile
from greenroom.http.context import ServerContext
from greenroom.http.routes.work import digest_checks
from greenroom.http.server import create_app, make_context
from greenroom.testing.scripted import Cue, ReplyMaker, ScriptedCall, ScriptedModel
from tests.app.teams.play import GatedModel, make_environment, make_repository

Json = dict[str, Any]
PORT = 8760
NEW_TEST = (
    "import unittest\n\nfrom shop.cart import total\n\n\nclass Empty(unittest.TestCase):\n"
    "    def test_empty(self):\n        self.assertEqual(total([]), 0)\n"
)


def call(tool: str, **arguments: object) -> ScriptedCall:
    """Return a tool call."""
    return ScriptedCall(name=tool, arguments=arguments)


def coder(*replies: ReplyMaker) -> list[Cue]:
    """Return the script of the coder, turn by turn. Its last reply ends the work."""
    turns = [*replies, call("finish", status="done", summary="It adds a test.")]
    return [Cue(agent="coder", turn=number, reply=reply) for number, reply in enumerate(turns, 1)]


def write_test() -> ScriptedCall:
    """Return the call that adds a test to the shop."""
    return call("rewrite", file="tests/test_empty.py", content=NEW_TEST)


@dataclass(kw_only=True)
class Desk:
    """One process of a server, and a person's requests to it."""

    context: ServerContext
    app: FastAPI
    client: httpx2.AsyncClient
    model: ScriptedModel

    @property
    def runtime(self) -> Runtime:
        """The runtime of the server."""
        return self.context.runtime

    async def get(self, address: str, **params: object) -> Any:
        """Return what an address gives."""
        answer = await self.client.get(f"/api{address}", params={name: str(value) for name, value in params.items()})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, address: str, status: int = 200, **body: object) -> Json:
        """Send a body and return the answer, which has this status."""
        answer = await self.client.post(f"/api{address}", json=body)
        assert answer.status_code == status, answer.text
        found: Json = answer.json()
        return found

    async def start(self, **body: object) -> TeamId:
        """Start a run and return its id. `confirm_checks=True` approves the checks that the project has now."""
        if body.get("confirm_checks") is True:
            app = self.context.app
            body["confirm_checks"] = digest_checks(plan_project_checks(app.root, sandboxed=False).unapproved)
        return TeamId((await self.post("/runs", 201, **body))["id"])

    async def rest(self, run: TeamId, timeout: float = 90.0) -> None:
        """Wait until this server does not host the run any more."""
        async with asyncio.timeout(timeout):
            await self.context.host.wait(run)

    async def ask(self, run: TeamId) -> Json:
        """Wait for the next question of a run and return it."""
        async with asyncio.timeout(60):
            async for entry in self.runtime.events(run, follow=True):
                items = await self.list_open(run) if isinstance(entry.event, ApprovalRequested) else []
                if items:
                    return items[0]
        raise AssertionError("the run asks nothing")

    async def answer(self, item: Json, status: int = 200, **body: object) -> Json:
        """Answer an item of the inbox."""
        return await self.post(f"/runs/{item['run']}/inbox/{quote(item['id'], safe='')}", status, **body)

    async def allow(self, run: TeamId, until: str = "") -> Json | None:
        """Allow what a run asks until it asks for something of a kind. Return that, or None when the run has ended."""
        async with asyncio.timeout(90):
            async for entry in self.runtime.events(run, follow=True):
                if isinstance(entry.event, TaskEnded):
                    await self.rest(run)
                    return None
                found = await self._allow_open(run, until) if isinstance(entry.event, ApprovalRequested) else None
                if found is not None:
                    return found
        raise AssertionError("the run does not end")

    async def _allow_open(self, run: TeamId, until: str) -> Json | None:
        for item in await self.list_open(run):
            if item["kind"] == until:
                return item
            body: Json = {"scope": "run"} if item["kind"] == "permission" else {"text": "yes"}
            await self.answer(item, **body)
        return None

    async def list_open(self, run: TeamId) -> list[Json]:
        """Return what waits for a person in a run."""
        return [item for item in (await self.get("/inbox"))["items"] if item["run"] == run]


@asynccontextmanager
async def open_desk(cues: Iterable[Cue], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    """Open a server on the current folder. Its home stays when it is closed."""
    model = GatedModel(cues)
    monkeypatch.setattr(ModelSession, "get_model", lambda *_: model)
    monkeypatch.setattr(ModelSession, "resolve_alias", lambda _, name: name or "scripted:script")
    app = AppContext()
    app.runtime = await Runtime.open(home_folder(), capability_factories=make_capability_factories(app))
    context = make_context(app, app.runtime)
    access = AccessFile(home_folder())
    access.open()
    server = create_app(context, access, PORT, page=home_folder() / "page")
    transport, token = httpx2.ASGITransport(app=server), {"Authorization": f"Bearer {access.token}"}
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}", headers=token) as client:
        try:
            yield Desk(context=context, app=server, client=client, model=model)
        finally:
            await context.hub.close()
            await context.host.close()
            await app.runtime.close()
            await app.close()


def enter_shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the repository of a shop the current folder, and keep everything of Greenroom beside it."""
    for name, value in make_environment(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(folder / "person"))
    make_repository(folder / "shop")
    monkeypatch.chdir(folder / "shop")
    return folder / "shop"
