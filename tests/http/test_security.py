"""Nothing but the person's own browser and programs uses the server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import httpx2
import pytest

from greenroom.core.base.errors import WorldFault
from greenroom.http import event_hub
from greenroom.http.access import CODE_LIFETIME_S, SESSION_LIFETIME_S, AccessFile
from greenroom.http.security import MAX_BODY_BYTES, Guard
from greenroom.http.server import GuardedApi
from tests.http.conftest import ORIGIN, PORT, Site, open_site

SAME = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}


async def test_a_request_without_login_is_refused(site: Site) -> None:
    for path in ("/api/session", "/api/runs", "/api/events", "/api/openapi.json", "/api/nothing"):
        answer = await site.client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_logged_in")


async def test_the_token_lets_a_program_in_and_a_wrong_one_does_not(site: Site) -> None:
    assert (await site.client.get("/api/session", headers=site.token)).status_code == 200
    for wrong in ("Bearer ", "Bearer x", f"Basic {site.access.token}", f"Bearer {site.access.token}x", "Bearer é"):
        answer = await site.client.get("/api/session", headers=[(b"Authorization", wrong.encode())])
        assert answer.status_code == 401


@pytest.mark.parametrize("query", ["token", "access_token", "authorization", "code", "key"])
async def test_a_token_in_the_address_is_never_taken(site: Site, query: str) -> None:
    assert (await site.client.get("/api/session", params={query: site.access.token})).status_code == 401


async def test_a_login_link_works_once(site: Site) -> None:
    code = site.access.make_code()
    first = await site.client.get("/login", params={"code": code})
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"greenroom-{PORT}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={SESSION_LIFETIME_S}"} <= set(cookie.split("; "))
    assert (await site.client.get("/api/session", headers=SAME)).status_code == 200
    site.client.cookies.clear()
    assert (await site.client.get("/login", params={"code": code})).status_code == 401
    assert (await site.client.get("/api/session")).status_code == 401


async def test_a_browser_that_logs_out_has_to_log_in_again(site: Site) -> None:
    await site.log_in()
    session = site.client.cookies[f"greenroom-{PORT}"]
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}):  # no other page logs a person out
        assert (await site.client.post("/api/logout", json={}, headers=headers)).status_code == 403
    answer = await site.client.post("/api/logout", json={}, headers=SAME)
    assert (answer.status_code, f"greenroom-{PORT}" in site.client.cookies) == (204, False)
    site.client.cookies.set(f"greenroom-{PORT}", session)  # a copy of the cookie ends with it
    assert (await site.client.get("/api/session", headers=SAME)).status_code == 401
    assert (await site.client.post("/api/logout", json={}, headers=SAME)).status_code == 401


async def test_the_event_stream_of_a_browser_ends_with_its_session(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, wait = asyncio.Event(), event_hub._wait

    async def report(changed: asyncio.Event, _: float) -> bool:
        begun.set()
        return await wait(changed, 0.01)

    monkeypatch.setattr(event_hub, "_wait", report)
    await site.log_in()
    stream = asyncio.create_task(site.client.get("/api/events"))
    async with asyncio.timeout(20):
        await begun.wait()
        await site.client.post("/api/logout", json={}, headers=SAME)
        assert (await stream).text.endswith("event: error\ndata: {}\n\n")


async def test_a_used_link_leads_a_browser_to_the_page_and_gives_it_nothing(site: Site) -> None:
    code = site.access.make_code()
    await site.client.get("/login", params={"code": code})
    site.client.cookies.clear()
    answer = await site.client.get("/login", params={"code": code}, headers={"Accept": "text/html,*/*"})
    assert (answer.status_code, answer.headers["location"], "set-cookie" in answer.headers) == (303, "/", False)
    assert (await site.client.get("/api/session")).status_code == 401


@pytest.mark.parametrize("path", ["/%00", "/assets/%00", f"/assets/{'x' * 300}", f"/assets/{'x' * 5_000}"])
async def test_an_address_that_no_file_can_have_is_not_found(site: Site, path: str) -> None:
    assert (await site.client.get(path)).status_code == 404


@pytest.mark.parametrize(
    "path", ["//api/session", "/API/session", "/./api/session", "/x/../api/session", "/api;/session"]
)
async def test_no_spelling_of_an_address_avoids_the_login(site: Site, path: str) -> None:
    answer = await site.client.get(httpx2.URL(f"{ORIGIN}").copy_with(raw_path=path.encode()))
    assert answer.status_code in (401, 503), "the API, or the page, which is not built here"
    assert answer.headers["content-security-policy"]


async def test_a_link_on_another_page_logs_no_browser_in(site: Site) -> None:
    code = site.access.make_code()
    for kind in ("cross-site", "same-site"):
        answer = await site.client.get("/login", params={"code": code}, headers={"Sec-Fetch-Site": kind})
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
        assert answer.json()["message"].endswith("To open a link, paste it into the address bar.")
    typed = await site.client.get("/login", params={"code": code}, headers={"Sec-Fetch-Site": "none"})
    assert typed.status_code == 303, "and the code is still good"


async def test_a_login_link_ends_after_ten_minutes(site: Site) -> None:
    code = site.access.make_code()
    site.clock.seconds += CODE_LIFETIME_S + 1
    assert (await site.client.get("/login", params={"code": code})).status_code == 401


async def test_a_session_survives_a_restart_and_ends_after_thirty_days(tmp_path: Path) -> None:
    async with open_site(tmp_path) as first:
        await first.log_in()
        cookies = first.client.cookies
    async with open_site(tmp_path) as second:
        second.client.cookies = cookies
        assert (await second.client.get("/api/session")).status_code == 200
        second.clock.seconds += SESSION_LIFETIME_S + 1
        assert (await second.client.get("/api/session")).status_code == 401


async def test_the_file_holds_no_code_and_no_session(site: Site) -> None:
    code = site.access.make_code()
    await site.log_in()
    text = site.access.path.read_text("utf-8")
    assert code not in text
    assert site.client.cookies[f"greenroom-{PORT}"] not in text
    assert len(json.loads(text)["token"]) >= 43  # 256 bits
    assert site.access.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_token_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    access = AccessFile(tmp_path)
    access.open()
    access.path.chmod(mode)
    with pytest.raises(WorldFault, match="Other users can read"):
        AccessFile(tmp_path).open()


def test_a_token_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    access = AccessFile(tmp_path)
    access.open()
    access.path.rename(tmp_path / "elsewhere")
    access.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorldFault, match="is a link"):
        AccessFile(tmp_path).open()
    assert access.path.readlink() == tmp_path / "elsewhere"


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1", "localhost", "127.0.0.1:80", "127.0.0.1:87600", f"127.0.0.1.:{PORT}", ""),
        *(f"localhost.evil.example:{PORT}", f"0.0.0.0:{PORT}", f"LOCALHOST:{PORT}", f"a@127.0.0.1:{PORT}"),
        *(f"localhost.:{PORT}", f"[::ffff:127.0.0.1]:{PORT}", f"[0:0:0:0:0:0:0:1]:{PORT}", f"127.1:{PORT}"),
        *(
            f"2130706433:{PORT}",
            f"127.0.0.1:0{PORT}",
            f"127.0.0.1:{PORT},evil.example",
            f"evil.example#@127.0.0.1:{PORT}",
        ),
    ],
)
async def test_another_host_is_refused_even_with_the_token(site: Site, host: str) -> None:
    for path in ("/", "/login", "/api/session", "/assets/x.js"):
        answer = await site.client.get(path, headers={**site.token, "Host": host})
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong_host")


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}"])
async def test_the_names_of_this_machine_are_taken(site: Site, host: str) -> None:
    assert (await site.client.get("/api/session", headers={**site.token, "Host": host})).status_code == 200


async def test_two_hosts_are_refused(site: Site) -> None:
    hosts = [("Host", f"127.0.0.1:{PORT}"), ("Host", "evil.example"), *site.token.items()]
    assert (await site.client.get("/api/session", headers=hosts)).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        *({"Origin": origin} for origin in ("http://evil.example", "null", f"https://127.0.0.1:{PORT}", "")),
        {"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-site"},
        {"Origin": f"http://localhost:{PORT}"},  # another origin than the host that was asked
        *({"Sec-Fetch-Site": site} for site in ("cross-site", "same-site", "")),
        {**SAME, "Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_another_page_is_refused(site: Site, headers: dict[str, str]) -> None:
    await site.log_in()
    for method, more in (("GET", {}), ("GET", site.token), ("POST", site.token), ("POST", {})):
        answer = await site.client.request(method, "/api/runs", headers={**headers, **more}, json={})
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong_origin")


async def test_a_browser_writes_only_with_its_origin(site: Site) -> None:
    await site.log_in()
    assert (await site.client.post("/api/runs", json={})).status_code == 403
    assert (await site.client.post("/api/runs", json={}, headers={"Sec-Fetch-Site": "none"})).status_code == 403
    assert (await site.client.post("/api/nothing", json={}, headers=SAME)).status_code in (404, 405)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{", 422, "'body' is not valid: it is not JSON (Expecting property name enclosed in double quotes)."),
        ("[" * 5_000, 400, "The request cannot be read: its body is not JSON, or is nested too deeply."),
        ('{"request": "x", "version": ' + "9" * 5_000 + "}", 400, "The request cannot be read"),
        ('{"request": "x\\u0000"}', 422, "'request' is not valid: it has a NUL character."),
        ('{"request": "x", "cost_limit": 1e-7}', 422, "'cost_limit' is not valid: it is less than 0.0001."),
        ('{"request": "x", "cost_limit": NaN}', 422, "'cost_limit' is not valid: "),
        ('{"request": " \\n"}', 422, "'request' is not valid: it is empty."),
        ('{"request": "x", "nix": 1}', 422, "'nix' is not valid: there is no such field."),
        ('{"question": 1}', 422, "'request' is not valid: it is missing. 'question' is not valid: it is not true"),
    ],
)
async def test_a_body_that_cannot_be_used_is_refused_in_words(site: Site, body: str, status: int, message: str) -> None:
    headers = {**site.token, "Content-Type": "application/json"}
    answer = await site.client.post("/api/runs", headers=headers, content=body)
    assert answer.status_code == status
    assert answer.json()["message"].startswith(message)
    chinese = await site.client.post("/api/runs", headers={**headers, "Accept-Language": "zh"}, content=body)
    assert "。" in chinese.json()["message"]
    assert not re.search(r"\bis\b", chinese.json()["message"])


@pytest.mark.parametrize(
    "kind",
    [
        *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""),
        *(
            "application/json, text/plain",
            "application/jsonx",
            "application/vnd.api+json",
            "text/plain;application/json",
        ),
    ],
)
async def test_only_json_is_taken(site: Site, kind: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        headers = {**site.token, "Content-Type": kind}
        answer = await site.client.request(method, "/api/runs", headers=headers, content=b"{}")
        assert (answer.status_code, answer.json()["code"]) == (415, "only_json")


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PATCH", "CONNECT", "PROPFIND"])
async def test_other_methods_are_refused(site: Site, method: str) -> None:
    answer = await site.client.request(method, "/api/session", headers=site.token)
    assert answer.status_code == 405
    override = {"X-HTTP-Method-Override": method, "X-Method-Override": method, **site.token}
    assert (await site.client.post("/api/session?_method=GET", headers=override, json={})).status_code == 405
    head = await site.client.head("/api/runs", headers=site.token)
    assert (head.status_code, head.headers["allow"]) == (405, "GET")
    for method_, path, message in (("PUT", "runs", "method."), ("GET", "nothing", "nothing at this address.")):
        found = await site.client.request(method_, f"/api/{path}", headers=site.token, json={})
        assert found.json()["message"].endswith(message)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_long_body_is_refused(site: Site) -> None:
    async def stream() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * (MAX_BODY_BYTES // 2)

    headers = {**site.token, "Content-Type": "application/json"}
    for content in (b" " * (MAX_BODY_BYTES + 1), stream()):
        answer = await site.client.post("/api/runs", headers=headers, content=content)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_long")
    answer = await site.client.post("/api/runs", headers={**headers, "Content-Length": "-1"}, content=b"{}")
    assert answer.status_code == 413


def stop_the_clock(site: Site) -> None:
    """Let no rate limit be refilled."""
    assert isinstance(site.app, GuardedApi)
    site.app.guard = partial(Guard, access=site.access, port=PORT, now=lambda: 0.0)


async def test_login_attempts_are_limited(site: Site) -> None:
    stop_the_clock(site)
    answers = [(await site.client.get("/login", params={"code": f"x{number}"})).status_code for number in range(12)]
    assert answers == [401] * 10 + [429] * 2


async def test_requests_are_limited(site: Site) -> None:
    stop_the_clock(site)
    answers = [(await site.client.get("/api/session")).status_code for _ in range(602)]
    assert answers == [401] * 600 + [429] * 2


@pytest.mark.parametrize("path", ["/", "/api/session", "/api/nothing", "/login", "/assets/none.js"])
async def test_every_answer_has_the_headers_of_security(site: Site, path: str) -> None:
    for headers in ({}, site.token, {"Host": "evil.example"}):
        answer = await site.client.get(path, headers=headers)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
        if path.startswith("/api"):
            assert answer.headers["cache-control"] == "no-store"


async def test_a_mistake_of_the_server_says_nothing_about_itself(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        raise ZeroDivisionError("the secret reason")

    monkeypatch.setattr(site.runtime.log, "streams", fail)
    answer = await site.client.get("/api/runs", headers=site.token)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["../secret", "%2e%2e/secret", "assets/../../secret", "..%2fsecret", "assets/%2e%2e/%2e%2e/secret", "link"]
)
async def test_no_file_beside_the_page_is_sent(tmp_path: Path, path: str) -> None:
    page = tmp_path / "page"
    (page / "assets").mkdir(parents=True)
    (tmp_path / "secret").write_text("hidden", "utf-8")
    (page / "link").symlink_to(tmp_path / "secret")
    (page / "index.html").write_text("<html></html>", "utf-8")
    async with open_site(tmp_path, page=page) as site:
        answer = await site.client.get(httpx2.URL(f"{ORIGIN}/{path}"))
        assert "hidden" not in answer.text
        assert answer.status_code in (200, 404)
        assert (await site.client.get("/runs/anything")).text == "<html></html>"


async def test_answers_are_in_the_language_of_the_browser(site: Site) -> None:
    chinese = await site.client.get("/api/session", headers={"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"})
    assert chinese.json()["message"].startswith("您尚未登录")
    english = await site.client.get("/api/session?language=en", headers={"Accept-Language": "zh"})
    assert english.json()["message"].startswith("You are not")
