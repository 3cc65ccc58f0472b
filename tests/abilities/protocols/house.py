"""The tools and agents against which the tables are parsed, and the expectations of a row."""

from dataclasses import dataclass, field
from typing import Final

from greenroom.abilities.protocols.parse_result import MultiBlockPolicy, ParsedReply, ProtocolName
from greenroom.abilities.protocols.text_calls import read
from greenroom.core.base.records import Data
from greenroom.core.ports.model import ToolSpec

ALL: Final[tuple[ProtocolName, ...]] = ("tool_call", "xml_tool", "send_message", "patch", "rewrite")
AGENTS: Final = {"bob": "writes code", "amy": "reviews it", "老王": "翻译"}
PURE: Final = frozenset({"look", "loose"})
TOOLS: Final = (
    ToolSpec(
        name="look",
        description="Looks at a file.",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "depth": {"type": "integer", "minimum": 0},
                "deep": {"type": "boolean"},
                "ratio": {"type": "number"},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "note": {"type": ["string", "null"]},
                "mode": {"enum": ["fast", "slow"]},
                "level": {"enum": [1, 2]},
                "filter": {"$ref": "#/$defs/filter"},
            },
            "required": ["path"],
            "additionalProperties": False,
            "$defs": {"filter": {"type": "object", "properties": {"ext": {"type": "string"}}}},
        },
    ),
    ToolSpec(
        name="save",
        description="Saves a text.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "mode": {"type": "integer"}},
            "required": ["path", "text"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(name="ping", description="Says whether anybody is there."),
    ToolSpec(name="loose", description="Takes anything.", parameters={"type": "object"}),
    ToolSpec(name="broken", description="Has a schema that is none.", parameters={"type": "nonsense"}),
)


@dataclass(frozen=True, kw_only=True)
class Runs:
    """This call runs."""

    tool: str
    arguments: Data
    repaired: bool = False
    note: str = ""
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Refuses:
    """Nothing runs, and the reason contains all of these texts. `mended`: a complete block is offered instead."""

    because: tuple[str, ...]
    mended: bool


@dataclass(frozen=True, kw_only=True)
class Says:
    """There is nothing to run. `hint` is part of the hint for the model, "" if there is none."""

    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Withheld:
    """Nothing runs, and the model is told: that there is nothing to run, or why it did not run."""

    because: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One reply and the expected result."""

    name: str
    text: str
    wants: Runs | Refuses | Says | Withheld
    protocols: tuple[ProtocolName, ...] = ALL
    policy: MultiBlockPolicy = "reject"
    ended: bool | None = None
    pure: frozenset[str] = field(default=PURE)

    def read(self, text: str | None = None) -> ParsedReply:
        """Parse the reply, or another text in its place."""
        return read(
            self.text if text is None else text,
            self.protocols,
            tools=TOOLS,
            agents=AGENTS,
            pure=self.pure,
            policy=self.policy,
            ended=self.ended,
        )


def looks(path: str = "a.py", **more: object) -> Runs:
    """Expect a call of `look`."""
    return Runs(tool="look", arguments={"path": path, **more})


def mends(path: str = "a.py", **more: object) -> Runs:
    """Expect a repaired call of `look`."""
    return Runs(tool="look", arguments={"path": path, **more}, repaired=True, note="mended")


def sends(message: str, to: str = "bob", note: str = "") -> Runs:
    return Runs(tool="send_message", arguments={"receiver": to, "message": message, "handoff": True}, note=note)


def refuses(*because: str) -> Refuses:
    """Expect a rejection without an offer."""
    return Refuses(because=because, mended=False)


def offers(*because: str) -> Refuses:
    """Expect a rejection with an offered block."""
    return Refuses(because=because, mended=True)


NOTHING: Final = Says()
