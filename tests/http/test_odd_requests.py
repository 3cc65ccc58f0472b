"""Every address of the API gets odd values, from its own OpenAPI description: none may be a server error."""

from __future__ import annotations

import random
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.http.desk import Json, coder, enter_shop, open_desk, write_test

PER_ADDRESS = 20
TEXTS = ("", "x", "0", "-1", "5", "9" * 20, "\x00", "é\u202e", "../../etc/passwd", "a" * 250, "%", "coder#1", "null")
VALUES: tuple[object, ...] = (*TEXTS, 1, 0, -5, 10**20, None, True, [], {}, 1.5)
VERBS = ("pause", "fork", "rewind", "apply", "branch", "undo", "discard")


def make_path(path: str, run: str, chance: random.Random) -> str:
    """Fill in the names of a path; the run is often one that is there."""

    def choose(found: re.Match[str]) -> str:
        if found[1] == "run" and chance.random() < 0.8:
            return run
        return chance.choice(VERBS) if found[1] == "verb" else quote(chance.choice(TEXTS) or "x", safe="")

    return re.sub(r"\{(\w+)\}", choose, path)


def make_body(operation: Json, api: Json, chance: random.Random) -> Json | None:
    """Return some of the fields that an address takes, with odd values; never enough to start a run."""
    if "requestBody" not in operation:
        return None
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    name = schema.get("$ref", "").rpartition("/")[2]
    fields = api["components"]["schemas"].get(name, schema).get("properties", {})
    odd = {field: chance.choice(VALUES) for field in fields if chance.random() < 0.5}
    return {field: value for field, value in odd.items() if (name, field) != ("RunInput", "request")}


async def test_no_request_is_a_server_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_shop(tmp_path, monkeypatch)
    chance, statuses, faults = random.Random(7), set[int](), list[str]()
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test", confirm_checks=True)
        await desk.ask(run)
        api: Json = (await desk.client.get("/api/openapi.json")).json()
        operations = [
            (method, path, operation)
            for path, methods in api["paths"].items()
            for method, operation in methods.items()
            if path != "/api/events"
        ]
        for method, path, operation in operations * PER_ADDRESS:
            names = [row["name"] for row in operation.get("parameters", ()) if row["in"] == "query"]
            query = {name: chance.choice(TEXTS) for name in names if chance.random() < 0.6}
            address, body = make_path(path, run, chance), make_body(operation, api, chance)
            answer = await desk.client.request(method, address, params=query, json=body)
            statuses.add(answer.status_code)
            if answer.status_code >= 500:
                faults.append(f"{method} {address} {query} {body}: {answer.text[:200]}")
    assert faults == []
    assert {200, 404, 422} <= statuses
