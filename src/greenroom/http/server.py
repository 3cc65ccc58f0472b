"""The HTTP server of one home and one folder: the API for programs and the page for people."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import BinaryIO, Final, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from greenroom.app.context import AppContext
from greenroom.app.messages import translate
from greenroom.app.run_host import RunHost
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Bug, GreenroomError, ModelFault, RefusedError, RunsElsewhere, WorldFault
from greenroom.http.access import AccessFile
from greenroom.http.context import ServerContext
from greenroom.http.event_hub import EventHub
from greenroom.http.routes import agents, changes, events, knowledge, runs, work
from greenroom.http.schemas import Problem
from greenroom.http.security import READS, Guard
from greenroom.http.state_reader import StateReader

PAGE: Final = Path(str(files("greenroom.http"))) / "page"
ROUTERS: Final = (runs.router, events.router, agents.router, work.router, changes.router, knowledge.router)
ERROR_STATUSES: Final = (400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
LOGINS: Final = {
    "token": {"type": "http", "scheme": "bearer", "description": "The token in `server/access.json` of the home."},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "greenroom-PORT",
        "description": "`GET /login?code=CODE`, the link that `greenroom serve` prints, sets it once. PORT is the "
        "server's. A write with it has to come from the page itself.",
    },
}
NOT_NOW: Final = ("branch_exists", "folder_too_large", "no_model_found", "missing_key", "missing_stored_key")
WRONG_VALUE: Final = ("bad_branch_name", "full_ref_name")
WRONG_MODEL: Final = (
    "unknown_provider",
    "name_without_provider",
    "propose_full_name",
    "no_model_name",
    "price_unknown",
)
"""What a person's input causes, by the names of the faults. Those of `plan.` are wrong input too."""

STATUS_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


def make_context(app: AppContext, runtime: Runtime) -> ServerContext:
    """Return the parts of a server, connected with each other."""
    reader, host = StateReader(runtime), RunHost(app)
    hub = EventHub(app, runtime, reader)
    context = ServerContext(app=app, runtime=runtime, reader=reader, host=host, hub=hub)
    hub.describe_run = partial(runs.make_row, context)
    host.show_live = hub.show_live
    return context


class GuardedApi(FastAPI):
    """An app behind the guard, which sees every request first and every answer last."""

    guard: Callable[[ASGIApp], ASGIApp]

    def openapi(self) -> dict[str, object]:
        """Return the description of the API, with the two ways to log in, which the guard checks."""
        described: dict[str, object] = super().openapi()
        cast("dict[str, object]", described["components"])["securitySchemes"] = LOGINS
        return described | {"security": [{name: []} for name in LOGINS]}

    def build_middleware_stack(self) -> ASGIApp:
        """Build the app, with the guard around all of it."""
        return self.guard(super().build_middleware_stack())


def create_app(context: ServerContext, access: AccessFile, port: int, *, page: Path = PAGE) -> FastAPI:
    """Create the API and the page behind their guard. `page` is the folder of the built page."""
    server = GuardedApi(
        title="Greenroom",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={status: {"model": Problem} for status in ERROR_STATUSES},
    )
    server.guard = partial(Guard, access=access, port=port)
    server.state.context = context
    for router in ROUTERS:
        server.include_router(router, prefix="/api")
    for kind in (GreenroomError, TimeoutError, RequestValidationError, HTTPException, Exception):
        server.add_exception_handler(kind, _report_error)

    async def show_page(scope: Scope, receive: Receive, send: Send) -> None:
        await _find_file(page, scope)(scope, receive, send)

    server.router.default = show_page
    return server


class UvicornServer(uvicorn.Server):
    """A server of uvicorn that leaves signals to its process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class Server:
    """The server of a home: its socket on a loopback address, its access file and its app."""

    def __init__(self, app: AppContext, runtime: Runtime, home: Path) -> None:
        self._context = make_context(app, runtime)
        self._access = AccessFile(home)
        self._access.open()
        self._socket: socket.socket | None = None
        self._name = "127.0.0.1"
        self.folder = app.root
        self._lock: BinaryIO | None = None
        self.port = 0

    def bind(self, host: str, port: int, other_port: str) -> bool:
        """Take the port of a loopback address. Return False if a server of this home has it already.

        Raise `WorldFault` for another address, or if the port cannot be used; `other_port` is the command to try then.
        """
        address = "127.0.0.1" if host == "localhost" else host
        if address not in ("127.0.0.1", "::1"):
            raise WorldFault("server.not_loopback", host=host, port=port or 8760)
        self._name = f"[{address}]" if ":" in address else address
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        # Named as TCP, or asyncio lets small answers wait 40 ms for an acknowledgement.
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port = port
        try:
            self._socket.bind((address, port))
            self._socket.listen()  # who opens the link now waits until the server runs
        except OSError as error:
            self._socket.close()
            if error.errno != errno.EADDRINUSE:
                raise WorldFault("server.port_refused", port=port, why=error.strerror) from None
            if self._take_lock():
                raise WorldFault("server.port_taken", port=port, command=other_port) from None
            return False
        self.port = int(self._socket.getsockname()[1])
        self._take_lock()
        return True

    def _take_lock(self) -> bool:
        """Take the lock of the server of this home at this port. If another process has it, learn its folder and return
        False."""
        self._lock = (self._access.path.parent / f"{self.port}.lock").open("a+b")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            self.folder = Path(os.fsdecode(self._lock.read()))
            return False
        self._lock.truncate(0)
        self._lock.write(os.fsencode(self.folder))
        self._lock.flush()
        return True

    def list_others(self) -> list[tuple[str, Path]]:
        """Return the ports and folders of the other servers of this home that run."""
        others = list[tuple[str, Path]]()
        for path in sorted(self._access.path.parent.glob("*.lock")):
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    others.append((path.stem, Path(os.fsdecode(file.read()))))
        return [other for other in others if other[0] != str(self.port)]

    def make_link(self) -> str:
        """Return a link that logs a browser in, once."""
        return f"http://{self._name}:{self.port}/login?code={self._access.make_code()}"

    async def run(self) -> None:
        """Serve until this task is cancelled."""
        if self._socket is None:
            raise Bug("The server has no socket.")
        config = uvicorn.Config(
            create_app(self._context, self._access, self.port),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        server = UvicornServer(config)
        serving = asyncio.create_task(server.serve(sockets=[self._socket]))
        try:
            await self._context.host.recover()
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            await self._context.hub.close()
            await serving
            await self._context.host.close()


def _find_file(page: Path, scope: Scope) -> Response:
    """Return a file of the page. Every other address outside /api is one of the page's own."""
    path = str(scope["path"]).removeprefix("/")
    if path == "api" or path.startswith("api/"):
        raise HTTPException(404)
    if scope["method"] not in READS:
        raise HTTPException(405, headers={"Allow": "GET, HEAD"})
    try:
        file = (page / path).resolve()
        is_found = file.is_relative_to(page.resolve()) and file.is_file()
    except (OSError, ValueError):  # no file can have such a name
        raise HTTPException(404) from None
    if not is_found:
        if path.startswith("assets/"):
            raise HTTPException(404)
        file = page / "index.html"
    if not file.is_file():
        return PlainTextResponse(translate("server.no_page"), status_code=503)
    is_unchanging = path.startswith("assets/")  # their names hold a hash of their content
    cache = "public, max-age=31536000, immutable" if is_unchanging else "no-cache"
    return FileResponse(file, headers={"Cache-Control": cache})


async def _report_error(_: Request, error: Exception) -> JSONResponse:
    """Answer with the problem. A mistake of ours is logged, and its text is not sent."""
    status, problem = describe_error(error)
    if status >= 500 and not isinstance(error, WorldFault | TimeoutError):
        logging.getLogger(__name__).error("A request failed", exc_info=error)
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse(problem.model_dump(), status, headers)


def describe_error(error: Exception) -> tuple[int, Problem]:
    """Return the status of an error, and what to say about it."""
    match error:
        case RefusedError():
            code = error.rejection.code
            return _refusal_status(code), Problem(code=code, message=error.why, hint=error.hint)
        case RunsElsewhere():
            return 409, Problem(code="runs_elsewhere", message=str(error))
        case WorldFault() | ModelFault():
            room, _, name = error.code.partition(".")
            is_wrong = room == "plan" or name in (*WRONG_VALUE, *WRONG_MODEL)
            status = 422 if is_wrong else 409 if name in NOT_NOW else 503
            hint = translate("server.see_models") if name in WRONG_MODEL else ""
            return status, Problem(code=error.code or "unavailable", message=str(error), hint=hint)
        case TimeoutError():
            return 503, Problem(code="timeout", message=translate("errors.team_process_timeout"))
        case RequestValidationError():
            return 422, Problem(code="invalid", message=_describe_faults(error))
        case HTTPException():
            code = STATUS_CODES.get(error.status_code, "bad_request")
            return error.status_code, Problem(code=code, message=translate(f"guard.{code}"))
        case _:
            return 500, Problem(code="internal", message=translate("server.internal_error"))


def _refusal_status(code: str) -> int:
    if code.startswith(("unknown", "no_such")):
        return 404
    return 422 if code.startswith(("invalid", "ambiguous")) else 409


def _describe_faults(error: RequestValidationError) -> str:
    """Return where the input is wrong and why, without the input itself."""
    faults = cast("Sequence[ErrorDetails]", error.errors())
    return " ".join(map(_describe_fault, faults[:5]))


def _describe_fault(fault: ErrorDetails) -> str:
    key = f"inputs.{fault['type']}"
    why = translate(key, **fault.get("ctx", {}))
    name = next(part for part in reversed(fault["loc"]) if isinstance(part, str))
    return translate("server.bad_field", name=name, why=fault["msg"] if why == key else why)
