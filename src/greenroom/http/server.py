"""The HTTP server of one home and one folder: the API for programs and the page for people."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from greenroom.app.context import AppContext
from greenroom.app.messages import translate
from greenroom.app.run_host import RunHost
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import GreenroomError, ModelFault, RefusedError, RunsElsewhere, WorldFault
from greenroom.http.context import ServerContext
from greenroom.http.routes import runs
from greenroom.http.schemas import Problem
from greenroom.http.state_reader import StateReader

PAGE: Final = Path(str(files("greenroom.http"))) / "page"
ROUTERS: Final = (runs.router,)
ERROR_STATUSES: Final = (400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
STATUS_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


def create_app(context: ServerContext, *, page: Path = PAGE) -> FastAPI:
    """Create the server. `page` is the folder of the built page."""
    server = FastAPI(
        title="Greenroom",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={status: {"model": Problem} for status in ERROR_STATUSES},
    )
    server.state.context = context
    for router in ROUTERS:
        server.include_router(router, prefix="/api")
    for kind in (GreenroomError, TimeoutError, RequestValidationError, HTTPException, Exception):
        server.add_exception_handler(kind, _report_error)

    @server.get("/{path:path}", include_in_schema=False)
    async def show_page(path: str) -> Response:
        """Send a file of the page. Every other address outside /api is one of the page's own."""
        return _send_file(page, path)

    return server


class OwnSignals(uvicorn.Server):
    """A server that leaves signals to its process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def run_server(app: AppContext, runtime: Runtime, port: int) -> None:
    """Serve until this task is cancelled."""
    context = ServerContext(app=app, runtime=runtime, reader=StateReader(runtime), host=RunHost(app))
    config = uvicorn.Config(
        create_app(context), host="127.0.0.1", port=port, log_config=None, server_header=False, access_log=False
    )
    server = OwnSignals(config)
    serving = asyncio.create_task(server.serve())
    try:
        await context.host.recover()
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
        await context.host.close()


def _send_file(page: Path, path: str) -> Response:
    if path == "api" or path.startswith("api/"):
        raise HTTPException(404)
    file = (page / path).resolve()
    if not (file.is_relative_to(page.resolve()) and file.is_file()):
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
    return JSONResponse(problem.model_dump(), status_code=status)


def describe_error(error: Exception) -> tuple[int, Problem]:
    """Return the status of an error, and what to say about it."""
    match error:
        case RefusedError():
            code = error.rejection.code
            return _refusal_status(code), Problem(code=code, message=error.why, hint=error.hint)
        case RunsElsewhere():
            return 409, Problem(code="runs_elsewhere", message=str(error))
        case WorldFault() | ModelFault():
            status = 400 if error.code.startswith("plan.") else 503
            return status, Problem(code=error.code or "unavailable", message=str(error))
        case TimeoutError():
            return 503, Problem(code="timeout", message=translate("errors.team_process_timeout"))
        case RequestValidationError():
            return 422, Problem(code="invalid", message=_describe_faults(error))
        case HTTPException():
            code = STATUS_CODES.get(error.status_code, "refused")
            return error.status_code, Problem(code=code, message=str(error.detail))
        case _:
            return 500, Problem(code="internal", message=translate("server.internal_error"))


def _refusal_status(code: str) -> int:
    if code.startswith(("unknown", "no_such")):
        return 404
    return 400 if code.startswith(("invalid", "ambiguous")) else 409


def _describe_faults(error: RequestValidationError) -> str:
    """Return where the input is wrong and why, without the input itself."""
    faults = cast("list[dict[str, object]]", error.errors())
    return "; ".join(
        f"{'.'.join(map(str, cast('tuple[object, ...]', fault['loc'])))}: {fault['msg']}" for fault in faults[:5]
    )
