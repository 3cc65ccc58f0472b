"""`greenroom serve`: the HTTP API and the page, for the runs of one home."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated, Final

import typer

from greenroom.app.messages import translate
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.installation import how_to_install

if TYPE_CHECKING:
    from greenroom.http.server import Server

DEFAULT_PORT: Final = 8760
SERVER_PACKAGES: Final = frozenset({"fastapi", "pydantic", "starlette", "uvicorn"})


async def serve(
    cli: Invocation,
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="The port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="A loopback address.")] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> Exit:
    """Serve the page and the HTTP API on this machine.

    It prints a link that logs your browser in once; run it again for a new link. Runs that you start on the page run in
    this process. Ctrl-C ends it, and the next `greenroom serve` resumes them.

    Examples:
      greenroom serve
      greenroom serve --port 9000 --no-open

    Exit codes: 0 a link to the server that runs already; 2; 3; 130.
    """
    server = _make_server(cli)
    is_first = server.bind(host, port, render_command(cli, "serve", "--port", "0"))
    link = server.make_link()
    cli.out.begin(link=link, port=server.port)
    (cli.out.show if cli.setup.quiet else cli.progress.note)(translate("server.link", link=link))
    for other, folder in server.list_others() if is_first else ():
        cli.progress.note(translate("server.other_runs", port=other, folder=folder))
    if not is_first:
        key = "server.already_served" if server.folder == cli.app.root else "server.serves_other_folder"
        command = render_command(cli, "serve", "--port", "0")
        cli.progress.note(translate(key, folder=server.folder, here=cli.app.root, command=command))
    if not no_open and cli.is_attended and _has_browser():
        await asyncio.to_thread(webbrowser.open, link)
    if is_first:
        known = {"home": cli.home, "folder": cli.app.root, "sandbox": cli.app.sandbox_tier}
        cli.progress.note(translate("server.works_on", **known), style="dim")
        await server.run()
    return cli.out.result("ok", Exit.DONE, link=link, port=server.port)


def _has_browser() -> bool:
    """Whether a browser with windows can be opened. One in the terminal would cover the link."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _make_server(cli: Invocation) -> Server:
    try:
        from greenroom.http.server import Server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SERVER_PACKAGES:
            raise
        raise WorldFault("server.extra_missing", command=how_to_install("server")) from None
    return Server(cli.app, cli.runtime, cli.home)
