"""The guard of the server: every request passes it first.

A page of someone else, a program of another user or a name that was rebound to this machine gets nothing. The checks
are in the order in which `Guard` makes them.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from greenroom.app.messages import LANGUAGES, set_task_language, translate
from greenroom.http.access import SESSION_LIFETIME_S, AccessFile
from greenroom.http.schemas import Problem

MAX_BODY_BYTES: Final = 1_000_000
BODY_TIMEOUT_S: Final = 30.0
MAX_STREAMS: Final = 256
"""How many event streams are open at once, over all clients."""

READS: Final = frozenset({"GET", "HEAD"})
WRITES: Final = frozenset({"POST", "PUT", "DELETE"})
EVENTS_PATH: Final = "/api/events"
LOGIN_PATH: Final = "/login"
LOGOUT_PATH: Final = "/api/logout"
OWN_SITES: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site: a page of this server, or an address that a person typed. A write is never typed."""

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class RateLimit:
    """A number of requests at once, refilled at a rate per second."""

    def __init__(self, size: float, per_second: float, now: Callable[[], float]) -> None:
        self._size = self._left = size
        self._rate = per_second
        self._now = now
        self._at = now()

    def take(self) -> bool:
        """Take one request. Return False if none is left."""
        now = self._now()
        self._left = min(self._size, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Guard:
    """Refuse every request that is not from this machine's person or their programs. `port` is the server's own."""

    def __init__(self, app: ASGIApp, access: AccessFile, port: int, now: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._access = access
        self._cookie = f"greenroom-{port}"
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self._logins = RateLimit(10, 1 / 6, now)
        self._requests: dict[str, RateLimit] = defaultdict(lambda: RateLimit(600, 100, now))
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        connection, path = HTTPConnection(scope), str(scope["path"])
        set_task_language(pick_language(connection))
        send = _add_headers(send, is_private=path == LOGIN_PATH or path.startswith("/api"))
        refusal = self._check(connection, path)
        if refusal is None and scope["method"] in WRITES:
            body = await _read_body(connection.headers, receive)
            refusal = body if isinstance(body, Response) else None
            receive = _replay(body, receive) if isinstance(body, bytes) else receive
        if refusal is not None:
            await refusal(scope, receive, send)
        elif path == LOGIN_PATH:
            await self._log_in(scope)(scope, receive, send)
        elif path == LOGOUT_PATH and scope["method"] == "POST":
            await self._log_out(connection)(scope, receive, send)
        else:
            await self._pass(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. Count the event streams that are open."""
        is_stream = scope["path"] == EVENTS_PATH
        connection = HTTPConnection(scope)  # reads the headers once: a stream asks with each frame
        scope["is_logged_in"] = lambda: bool(self._find_client(connection))
        if is_stream and self._streams >= MAX_STREAMS:
            await _refuse(429, "too_many_streams")(scope, receive, send)
            return
        self._streams += is_stream
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams -= is_stream

    def _check(self, connection: HTTPConnection, path: str) -> Response | None:
        """Return why a request is refused, or None."""
        headers, method = connection.headers, str(connection.scope["method"])
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return _refuse(403, "wrong_host")
        if not self._is_own_page(headers, hosts[0], method):
            return _refuse(403, "wrong_origin")
        if method not in READS | WRITES:
            return _refuse(405, "method_not_allowed")
        client = self._find_client(connection)
        if not self._requests[client].take():
            return _refuse(429, "too_many_requests")
        if path.startswith("/api") and not client:
            return _refuse(401, "not_logged_in")
        if method in WRITES and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refuse(415, "only_json")
        return None

    def _is_own_page(self, headers: Headers, host: str, method: str) -> bool:
        """Return whether no page of another origin made the request. A browser's write always names its origin."""
        origins, sites = headers.getlist("origin"), headers.getlist("sec-fetch-site")
        if any(origin != f"http://{host}" for origin in origins):
            return False
        if any(site not in OWN_SITES or (site == "none" and method not in READS) for site in sites):
            return False
        return method in READS or bool(origins or sites) or "cookie" not in headers

    def _find_client(self, connection: HTTPConnection) -> str:
        """Return who makes the request: the token's holder, or a browser's session; empty if neither."""
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return "token" if self._access.is_token(token.strip()) else ""
        session = connection.cookies.get(self._cookie, "")
        return session if session and self._access.is_session(session) else ""

    def _log_in(self, scope: Scope) -> Response:
        """Exchange the code of a login link for the cookie of a new session."""
        if scope["method"] != "GET":
            return _refuse(405, "method_not_allowed")
        if not self._logins.take():
            return _refuse(429, "too_many_requests")
        codes = parse_qs(bytes(scope["query_string"]).decode("ascii", "replace")).get("code", [])
        session = self._access.start_session(codes[0]) if len(codes) == 1 else None
        if session is None:  # the page says what to do, or shows the runs to a browser that is logged in
            is_browser = "text/html" in HTTPConnection(scope).headers.get("accept", "")
            return RedirectResponse("/", 303) if is_browser else _refuse(401, "wrong_code")
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self._cookie, session, max_age=SESSION_LIFETIME_S, httponly=True, samesite="strict", path="/")
        return answer

    def _log_out(self, connection: HTTPConnection) -> Response:
        """End the session of the browser that asks."""
        self._access.end_session(connection.cookies.get(self._cookie, ""))
        answer = Response(status_code=204)
        answer.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return answer


def pick_language(connection: HTTPConnection) -> str:
    """Return the language that the address or the browser names; that of the settings if it names none we have."""
    named = connection.query_params.get("language") or connection.headers.get("accept-language", "")
    known = (part.partition(";")[0].strip().lower().partition("-")[0] for part in named.split(","))
    return next((code for code in known if code in LANGUAGES), "")


def _refuse(status: int, code: str) -> Response:
    problem = Problem(code=code, message=translate(f"guard.{code}"))
    challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse(problem.model_dump(), status, challenge)


def _add_headers(send: Send, *, is_private: bool) -> Send:
    """Return a `send` that adds the headers of security to every answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(SECURITY_HEADERS)
            if is_private:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return send_with_headers


async def _read_body(headers: Headers, receive: Receive) -> bytes | Response:
    """Return the body of a write, or the refusal of one that is too long or takes too long."""
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY_BYTES:
        return _refuse(413, "too_long")
    try:
        body = await asyncio.wait_for(_receive_body(receive), BODY_TIMEOUT_S)
    except TimeoutError:
        return _refuse(400, "too_slow")
    return body if len(body) <= MAX_BODY_BYTES else _refuse(413, "too_long")


async def _receive_body(receive: Receive) -> bytes:
    """Return the body, or a little more than the longest one that is taken."""
    parts, size, is_open = list[bytes](), 0, True
    while is_open and size <= MAX_BODY_BYTES:
        message = await receive()
        parts.append(bytes(message.get("body", b"")))
        size += len(parts[-1])
        is_open = bool(message.get("more_body", False))
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives this body once, then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
