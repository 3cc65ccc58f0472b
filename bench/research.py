"""The speed of a research run: twenty crawlers at once, as a multiple of what the model alone takes.

The model takes one second per reply. The ideal is six replies one after the other: the plan, the calls, a fetch and an
answer of all crawlers together, the report, and the answer. Each crawler reads a page of its own from loopback.
"""

import contextlib
import io
import os
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from greenroom.app.model_registry import ModelSession
from greenroom.cli.app import run as run_command
from greenroom.core.ports.model import ModelRequest
from greenroom.testing.scripted import Cue, ReplyMaker, ScriptedCall, ScriptedModel, ScriptedReply
from tests.app.teams.play import make_environment
from tests.site import Site

GOALS = {"20 crawlers, times the ideal": ("<=", 1.3)}
LATENCY_S = 1.0
CRAWLERS = 20
REPLIES_IN_LINE = 6


def _crawl(request: ModelRequest) -> ScriptedCall | str:
    results = [message.content for message in request.messages if message.role == "tool"]
    asked = next(message.content for message in request.messages if message.role == "user")
    url = asked.rpartition("Read ")[2].split()[0]
    return results[-1] if results else ScriptedCall(name="web_fetch", arguments={"url": url})


def _make_cues(site: Site, count: int) -> list[Cue]:
    pages = (site.url(f"/bridge/{number}") for number in range(1, count + 1))
    calls = (
        ScriptedCall(name="call_agent", arguments={"agent_name": "crawl_agent", "instruction": f"Read {page}"})
        for page in pages
    )
    replies: tuple[ReplyMaker, ...] = (
        ScriptedCall(name="create_artifact", arguments={"id": "task_plan", "content": "- [ ] read\n"}),
        ScriptedReply(calls=tuple(calls)),
        ScriptedCall(name="create_artifact", arguments={"id": "report", "content": "All are read.\n"}),
        "Done.",
    )
    lead = (Cue(agent="lead_agent", turn=turn, reply=reply) for turn, reply in enumerate(replies, start=1))
    return [Cue(answering=True, reply=_crawl), *lead]


def _measure(count: int, latency: float) -> float:
    """Return the seconds of the command, from its start to its end."""
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-") as name, Site() as site:
        folder = Path(name)
        config = folder / "config" / "greenroom" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(site.settings)
        model = ScriptedModel(_make_cues(site, count), pace=latency)
        with (
            patch.dict(os.environ, make_environment(folder)),
            contextlib.chdir(folder),
            patch.object(ModelSession, "get_model", lambda _, __: model),
            patch.object(ModelSession, "resolve_alias", lambda _, name: name or "scripted:model"),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            began = time.perf_counter()
            code = run_command(("research", "How long are the bridges?"))
            took = time.perf_counter() - began
        if code != 0 or sum(site.asked.values()) != count:
            raise RuntimeError(f"the run ended with {code} after {sum(site.asked.values())} pages")
    return took


def measure(latency: float = LATENCY_S) -> dict[str, float]:
    """Measure a run of the lead and its crawlers, after one in which everything is imported."""
    _measure(1, 0.0)
    took = _measure(CRAWLERS, latency)
    return {
        "20 crawlers (s)": took,
        "20 crawlers, times the ideal": took / (REPLIES_IN_LINE * latency),
    }


def run() -> dict[str, float]:
    """Measure at the latency of a real model."""
    return measure()
