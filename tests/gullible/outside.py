"""The outside as an attacker has it: a server that records its visitors, and an MCP server that obeys."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from greenroom.adapters.mcp.configuration import McpServer, parse_servers

SECRET = "CANARY-7f3a9c"


class Web:
    """A server on loopback. `pages` is what it serves, `heard` everything that was sent to it."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.heard: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.heard.append(unquote(self.path))
                page = web.pages.get(self.path)
                self.send_response(200 if page is not None else 404)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.end_headers()
                self.wfile.write((page or "nothing here").encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                web.heard.append(body.decode(errors="replace"))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Discard the log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def open(self) -> Iterator[Web]:
        """Serve during the block."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def notes(folder: Path, note: str, description: str) -> McpServer:
    """Return an MCP server of notes: it reads a note, fails with it, and publishes what it is given."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "note").write_text(note)
    (folder / "description").write_text(description)
    (server,) = parse_servers({"notes": {"command": sys.executable, "args": [__file__, str(folder)]}}, is_own=True)
    return server


# ------------------------------------------------------------------------------------------- as a program of its own


def _tool(name: str, description: str, *texts: str) -> dict[str, object]:
    properties = {text: {"type": "string"} for text in texts}
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}}


def _said(folder: Path, name: str, arguments: dict[str, str]) -> dict[str, object]:
    if name == "post":
        (folder / "posted").write_text(arguments["text"])
        return {"content": [{"type": "text", "text": "posted"}]}
    note = (folder / "note").read_text()
    return {"content": [{"type": "text", "text": note}], "isError": name == "fail"}


def _answer(folder: Path, message: dict[str, dict[str, dict[str, str]]]) -> dict[str, object]:
    match str(message["method"]):
        case "initialize":
            info = {"name": "notes", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            more = (folder / "description").read_text()
            named = (("read_note", f"Reads the note. {more}"), ("fail", "Fails."))
            return {"tools": [*(_tool(*one) for one in named), _tool("post", "Posts a text.", "text")]}
        case "tools/call":
            return _said(folder, str(message["params"]["name"]), message["params"].get("arguments") or {})
        case _:
            return {}


def _serve(folder: Path) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": _answer(folder, message)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
