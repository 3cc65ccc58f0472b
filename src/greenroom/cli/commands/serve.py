"""`greenroom serve`: the HTTP API and the page, for the runs of one home."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import typer

from greenroom.app.context import AppContext
from greenroom.app.runtime import Runtime
from greenroom.cli.context import Invocation
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.installation import how_to_install

DEFAULT_PORT: Final = 8760
SERVER_PACKAGES: Final = frozenset({"fastapi", "pydantic", "starlette", "uvicorn"})


async def serve(
    cli: Invocation,
    *,
    port: Annotated[int, typer.Option("--port", metavar="PORT", help="The port on this machine.")] = DEFAULT_PORT,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> None:
    """Serve the page and the HTTP API on this machine.

    Runs that you start on the page run in this process. Ctrl-C ends it; `greenroom serve` resumes them.

    Examples:
      greenroom serve
      greenroom serve --port 9000 --no-open

    Exit codes: 0; 2; 3.
    """
    run_server = _load_server()
    cli.progress.note(f"http://127.0.0.1:{port}/")
    await run_server(cli.app, cli.runtime, port)


def _load_server() -> Callable[[AppContext, Runtime, int], Awaitable[None]]:
    try:
        from greenroom.http.server import run_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SERVER_PACKAGES:
            raise
        raise WorldFault("server.extra_missing", command=how_to_install("server")) from None
    return run_server
