"""A server without the SDK, for misbehaviour that the SDK prevents: `python raw.py MODE [FOLDER]`.

It speaks the handshake of 2025 and imports almost nothing, so that it starts in milliseconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
NAMES = (
    "echo",
    "count",
    "die",
    "hang",
    "nap",
    "babble",
    "shout",
    "flood",
    "family",
    "swap",
    "odd",
    "deny",
    "pour",
    "deafen",
)


def listed() -> list[object]:
    """Return all tools, including those that a test wrote into the folder."""
    words = "Now it does something else." if (FOLDER / "swapped").exists() else "Says what it is told."
    tools: list[object] = [{"name": name, "description": f"{name}.", "inputSchema": OBJECT} for name in NAMES]
    tools[0] = {"name": "echo", "description": words, "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}}
    extra = FOLDER / "tools.json"
    return [*tools, *(json.loads(extra.read_text()) if extra.exists() else ())]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def family() -> None:
    """Start a detached grandchild that ignores SIGTERM."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.closerange(0, 3)
    (FOLDER / "grandchild").touch()
    time.sleep(600)


def shout() -> None:
    while True:
        sys.stderr.write("x" * 65536)


def noted(name: str) -> None:
    with (FOLDER / "calls").open("a") as file:
        file.write(f"{name}\n")


def die() -> None:
    noted("die")
    os._exit(1)


def hang() -> None:
    noted("hang")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def flood() -> None:
    """Send notifications forever, as fast as they are read."""
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) + "\n"
    while not (FOLDER / "enough").exists():
        sys.stdout.write(line * 100)


def pour() -> None:
    """Send a line without an end."""
    while True:
        sys.stdout.write("x" * 65536)


def swap() -> None:
    (FOLDER / "swapped").touch()
    send({"method": "notifications/tools/list_changed"})


DONE = {
    "count": lambda: noted("count"),
    "die": die,
    "hang": hang,
    "nap": lambda: noted("nap"),
    "babble": lambda: sys.stdout.write("Loading model...\n\x1b[31m{not json}\n\n[1, 2]\n" * 10),
    "shout": lambda: threading.Thread(target=shout, daemon=True).start(),
    "flood": lambda: threading.Thread(target=flood, daemon=True).start(),
    "family": family,
    "pour": pour,
    "deafen": lambda: os.dup2(os.open(os.devnull, os.O_RDONLY), 0),
    "swap": swap,
}


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "echo":
        return text(str(arguments.get("text", "")))
    if name == "odd":
        return {"content": "this is no list", "isError": "perhaps"}
    DONE[name]()
    return text(f"{name} is done")


def listless() -> dict[str, Any] | None:
    """Return an invalid response instead of a list of tools."""
    match MODE:
        case "leaves":
            os._exit(4)
        case "jumbles":
            return {"result": {"tools": "many"}}
        case "refuses":
            return {"error": {"code": -32603, "message": "No tools today."}}
        case "is_mute":
            return None
        case _:
            return {"result": {"tools": listed()}}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            told = {"tools": {"listChanged": True}}
            info = {"name": "raw", "version": "1"}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": told, "serverInfo": info}}
        case "ping":
            return {"result": {}}
        case "tools/list" if MODE != "polite":
            return listless()
        case "tools/list":
            return {"result": {"tools": listed()}}
        case "tools/call" if message["params"]["name"] == "deny":
            return {"error": {"code": -32000, "message": "Not \x1b[31mtoday."}}
        case "tools/call" if message["params"]["name"] == "nap":
            called("nap", {})
            return None
        case "tools/call":
            return {"result": called(message["params"]["name"], message["params"].get("arguments") or {})}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    if MODE == "dies":
        sys.exit("Cannot find the database \x1b[2Jat postgres://secret-of-probe@host")
    if MODE == "hangs":
        family()
        time.sleep(600)
    if MODE == "prattles":
        while True:
            print("Hello, I am a web server.", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            (FOLDER / "cancelled").touch()
        if "id" in message and (told := answer(message)) is not None:
            send({"id": message["id"], **told})
    if MODE == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)


if __name__ == "__main__":
    main()
