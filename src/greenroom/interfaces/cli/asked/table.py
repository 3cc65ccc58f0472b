"""All commands in one table: what each does in a few words, and where it is. Nothing is imported for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Access = Literal["make", "change", "look", "none"]
"""What a command may do to the home: make one, change what is there, or only look (see `Runtime.open`), or nothing."""

SECTIONS: Final = ("begin", "organise", "take over", "look", "steer", "allow", "set up", "keep")
GROUPS: Final = {
    "agents": "The agents that files describe.",
    "prompt": "What models are asked with.",
    "models": "The models that can be asked.",
    "eval": "How well a model works here.",
    "config": "The settings that hold here.",
    "approvals": "What agents may not do without you.",
    "workspaces": "The copies in which jobs are done.",
    "tools": "The tools that agents can have.",
    "permissions": "What you have agreed to for good.",
    "mcp": "The MCP servers that agents have tools from.",
    "team": "Organisations: people, managers, and agents that plan.",
}
"""The first words of commands that have two."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One command. How it is typed is the function of its name in `syntax.<section>`, what it does in its `module`.

    The words of a `verbatim` one may begin with a dash.
    """

    section: str
    name: str
    module: str
    access: Access
    help: str
    verbatim: bool = False

    @property
    def function(self) -> str:
        """What it is called in Python, where a name has no gaps."""
        return self.name.replace(" ", "_")

    @property
    def room(self) -> str:
        """The module in which it is said how it is typed."""
        return f"entry.syntax.{self.section.replace(' ', '')}"


ENTRIES: Final = (
    Entry("begin", "demo", "demo", "none", "Watch a job from the request to the undo; needs no key."),
    Entry("begin", "ask", "ask", "make", "Ask a model; the answer comes on stdout."),
    Entry("begin", "run", "run", "make", "Give an agent something to do; its answer comes on stdout."),
    Entry("begin", "chat", "chat", "make", "Talk with an agent; go on with it later."),
    Entry("begin", "doctor", "doctor", "look", "Check this machine and the log, and say what to do."),
    Entry("organise", "team new", "team", "look", "Write the file of a new organisation."),
    Entry("organise", "team start", "team", "make", "Let an organisation work, until Ctrl-C."),
    Entry("organise", "team status", "team", "look", "How it stands; --type has all its states."),
    Entry("organise", "team list", "team", "look", "The organisations here, and who runs them."),
    Entry("organise", "team dismiss", "team", "change", "Let somebody go, for good."),
    Entry("organise", "team stop", "team", "change", "Stop one, also in another terminal."),
    Entry("organise", "talk", "talk", "make", "Your inbox in an organisation: read, answer, ask."),
    Entry("take over", "diff", "taking", "look", "What a job changed, as a patch."),
    Entry("take over", "apply", "taking", "look", "Bring what a job changed to your files, as one commit."),
    Entry("take over", "branch", "taking", "look", "Put what a job changed on a new branch."),
    Entry("take over", "discard", "taking", "look", "Drop the copy in which a job was done."),
    Entry("take over", "undo", "taking", "look", "Take back what was applied, byte for byte."),
    Entry("take over", "rewind", "rewind", "change", "Go back to a step, with files and talk, and on from there."),
    Entry("take over", "blame", "taking", "look", "Which step wrote a line, why, and what proves it."),
    Entry("take over", "workspaces list", "workspaces", "none", "The copies in which jobs are done."),
    Entry("take over", "workspaces clean", "workspaces", "look", "Take copies away that hold no work."),
    Entry("look", "tasks", "tasks", "look", "List what was and is being worked on."),
    Entry("look", "show", "show", "look", "Show a team: tasks, agents, messages, costs."),
    Entry("look", "events", "events", "look", "Print what happened; --follow to watch it happen."),
    Entry("look", "replay", "replay", "look", "Tell the story again, or what was true at any version."),
    Entry("look", "cost", "cost", "look", "What runs, agents or models have cost."),
    Entry("steer", "pause", "control", "change", "Start nothing new."),
    Entry("steer", "resume", "resume", "change", "Go on; a team that nobody runs is run here."),
    Entry("steer", "tell", "tell", "change", "Say something to whoever works on it."),
    Entry("steer", "cancel", "control", "change", "End the work; what runs is stopped."),
    Entry("steer", "answer", "answering", "change", "Say yes or no to a step that waits for you."),
    Entry("steer", "approvals list", "answering", "look", "All questions that wait for you."),
    Entry("steer", "approvals answer", "answering", "change", "The same as `answer`."),
    Entry("steer", "fork", "fork", "change", "Begin a new team from any moment of an old one."),
    Entry("allow", "tools list", "tools", "none", "The tools that agents can have here."),
    Entry("allow", "tools show", "tools", "none", "What models are told of a tool."),
    Entry("allow", "tools run", "by_hand", "make", "Call a tool yourself."),
    Entry("allow", "trust", "trust", "none", "See what this workspace brings, and agree to it."),
    Entry("allow", "permissions list", "permissions", "none", "The rules that you have agreed to."),
    Entry("allow", "permissions add", "permissions", "none", "Agree to a rule for good.", verbatim=True),
    Entry("allow", "permissions remove", "permissions", "none", "Agree to a rule no more.", verbatim=True),
    Entry("allow", "mcp add", "mcp_add", "none", "Look at an MCP server and add it to yours."),
    Entry("allow", "mcp list", "mcp", "none", "The MCP servers here, and whose each is."),
    Entry("allow", "mcp remove", "mcp_add", "none", "Remove one of your MCP servers."),
    Entry("allow", "mcp check", "mcp", "none", "Start MCP servers and see what has changed."),
    Entry("set up", "init", "init", "none", "Find or store a key, choose models, write the settings."),
    Entry("set up", "models list", "models", "none", "The models at hand: window, tools, price."),
    Entry("set up", "models check", "models", "none", "Try a model with three tiny calls."),
    Entry("set up", "eval live", "evals", "none", "Play fifteen small tasks with a model; say how it did."),
    Entry("set up", "config show", "config", "none", "Every setting, and where it comes from."),
    Entry("set up", "config path", "config", "none", "The files that are looked at."),
    Entry("set up", "agents list", "agents", "none", "The agents at hand, and where each is from."),
    Entry("set up", "agents show", "agents", "none", "All that is known of an agent."),
    Entry("set up", "agents new", "agents", "none", "Write a file for a new agent."),
    Entry("set up", "prompt show", "prompt", "none", "The exact request that an agent makes first."),
    Entry("keep", "du", "storage", "look", "How much room the teams take."),
    Entry("keep", "gc", "storage", "change", "Give back the room that nothing needs."),
    Entry("keep", "forget", "storage", "change", "Delete a team and all that was logged of it."),
)
TEAM: Final = Entry("begin", "demo team", "demo_team", "make", "Watch three scripted agents work.")
"""What `demo --team` does: one command to type, and two to do."""

VERSION: Final = Entry("begin", "version", "version", "look", "Say which version this is.")


def entry_of(name: str) -> Entry:
    """The command of this name, written together: the name of its order in lower case."""
    return next(entry for entry in (*ENTRIES, TEAM) if entry.name.replace(" ", "") == name)
