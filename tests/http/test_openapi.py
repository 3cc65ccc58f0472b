"""Schemathesis asks a real server everything that its OpenAPI description allows, and much that it forbids."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn

from greenroom.http.server import UvicornServer
from tests.http.desk import PORT, Desk, coder, enter_shop, open_desk, write_test

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,allow_header_conformance,ignored_auth"
)
REFUSALS = ["400", "401", "403", "404", "405", "409", "413", "415", "422", "429", "503"]


@asynccontextmanager
async def serve(desk: Desk) -> AsyncIterator[str]:
    """Serve the app of a desk on a loopback address, and return it."""
    config = uvicorn.Config(desk.app, log_config=None, access_log=False, ws="none")
    server, place = UvicornServer(config), socket.create_server(("127.0.0.1", 0))  # requests wait until it runs
    serving = asyncio.create_task(server.serve(sockets=[place]))
    try:
        yield f"http://127.0.0.1:{place.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


def write_config(path: Path, names: Mapping[str, Sequence[str]]) -> None:
    """Write which names most requests use."""
    lines = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}" for name, values in names.items()]
    places = [("query" if name == "path" else "path", name) for name in names]
    rows = [f'"{place}.{name}" = {{ dictionary = "{name}", probability = 0.9 }}' for place, name in places]
    checks = f"[checks.negative_data_rejection]\nexpected-statuses = {json.dumps(REFUSALS)}"
    path.write_text("\n".join((*lines, "[parameters]", *rows, checks)))


async def make_names(desk: Desk) -> dict[str, list[str]]:
    """Start two runs, one of which ends with a change, and return names that paths take."""
    ended, asking = [await desk.start(request="add a test", confirm_checks=True) for _ in range(2)]
    assert await desk.allow(ended) is None
    item = await desk.ask(asking)
    steps = [str(step.step_id) for step in await desk.context.app.steps(ended)]
    fixed = {"agent": ["coder"], "name": ["coder"], "path": ["tests/test_empty.py"]}
    return {"run": [ended, ended, asking], "item": [item["id"]], "step": steps, **fixed}


async def find_faults(shop: Path, monkeypatch: pytest.MonkeyPatch, phases: str, examples: int) -> str:
    """Return what is wrong with the answers of a server, empty if nothing is. The stream of events never ends."""
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        write_config(shop.parent / "schemathesis.toml", await make_names(desk))
        async with serve(desk) as url:
            login = f"Authorization: {desk.client.headers['Authorization']}"
            words = [str(Path(sys.executable).with_name("st")), "run", f"{url}/api/openapi.json", "--no-color"]
            words += ["-H", f"Host: 127.0.0.1:{PORT}", "-H", login, "--generation-with-security-parameters", "false"]
            words += ["--checks", CHECKS, "--continue-on-failure", "--exclude-path", "/api/events"]
            words += ["--generation-deterministic", "--phases", phases, "--max-examples", str(examples)]
            process = await asyncio.create_subprocess_exec(*words, cwd=shop.parent, stdout=PIPE, stderr=STDOUT)
            shown, _ = await process.communicate()
    return shown.decode() if process.returncode else ""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_shop(tmp_path, monkeypatch)


async def test_answers_are_those_of_the_description(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not await find_faults(shop, monkeypatch, "examples,fuzzing", 2)


@pytest.mark.prove
@pytest.mark.timeout(4000)
async def test_many_answers_are_those_of_the_description(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not await find_faults(shop, monkeypatch, "examples,coverage,fuzzing,stateful", 60)


async def test_the_description_names_the_logins_and_has_examples(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_desk([], monkeypatch) as desk:
        described = await desk.get("/openapi.json")
    parts = described["components"]
    assert {name: row["type"] for name, row in parts["securitySchemes"].items()} == {
        "token": "http",
        "cookie": "apiKey",
    }
    assert described["security"] == [{"token": []}, {"cookie": []}]
    inputs = ("PlanInput", "RunInput", "VerbInput", "MessageInput", "AnswerInput")
    assert all(parts["schemas"][name]["examples"] for name in inputs)
