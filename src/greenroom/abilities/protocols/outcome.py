"""What comes of reading a reply: nothing, one act, or a block that was not run and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from typing import Literal, Protocol

from greenroom.core.base.records import record
from greenroom.core.ports.model import ToolCall, ToolSpec


@record
class End:
    """Where a body and its block end. `sure`: the place is beyond doubt; `tagged`: an end tag stands there."""

    stop: int
    after: int
    sure: bool
    tagged: bool


@record
class Block:
    """A block that is meant to be run: the inside of its opening tag, its raw body, and how well its end is known.

    `clear` says that nothing stands behind it on its last line, `indent` how far its opening tag is from its margin.
    """

    tag: str
    attributes: str
    body: str
    start: int
    after: int
    line: int
    sure: bool
    tagged: bool
    clear: bool = True
    indent: int = 0

    @property
    def whole(self) -> bool:
        """Whether it is all there, as far as its form tells."""
        return self.clear and (self.sure or self.tagged)


Ender = Callable[[str, int, int], End]


@record
class Scan:
    """All blocks, why they are in doubt whatever is in them, what else was said, and a hint for the model."""

    blocks: tuple[Block, ...]
    doubt: str
    said: str
    hint: str


ProtocolName = Literal["tool_call", "xml_tool", "send_message", "patch", "rewrite"]

Policy = Literal["reject", "first"]
"""What becomes of a reply with several blocks: none is run, or the first one."""


@record
class Nothing:
    """No block to run. `said` is the reply without what the model thought aloud.

    `hint` is for the model, if it wrote a whole block where none is run: in a code fence, say.
    """

    said: str = ""
    hint: str = ""


@record
class Acts:
    """One call to run. Who runs it gives it its `call_id`: text has none.

    `said` is the text around the block, `notes` what the model is to be reminded of, `dropped` the blocks that the
    policy `first` left out, and `repaired` says that the call was mended before it could be read.
    """

    call: ToolCall
    protocol: ProtocolName
    said: str = ""
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    repaired: bool = False


@record
class NotRun:
    """A block, or several, and none was run. `repaired` is a whole block, ready to be sent, if one can be given."""

    why: str
    repaired: str = ""

    def __str__(self) -> str:
        if not self.repaired:
            return self.why
        return f"{self.why}\nIf this is what you mean, send exactly this:\n{self.repaired}"


Read = Nothing | Acts | NotRun


# ---------------------------------------------------------------------------------------------- between the files


@record
class Known:
    """What a block is read against: tools by name, those of them without side effects, and whom one can write to.

    `ended` says that the model stopped by itself, or that it was cut off; None that nobody knows.
    """

    tools: Mapping[str, ToolSpec]
    pure: Container[str]
    agents: Collection[str]
    ended: bool | None


@record
class Draft:
    """A call that was read. `repaired` says what had to be mended, `unended` that nobody knows whether it is whole."""

    call: ToolCall
    repaired: str = ""
    unended: bool = False


class TextProtocol(Protocol):
    """One way to write a call as text."""

    @property
    def name(self) -> ProtocolName:
        """Its name, also of its prompt."""
        ...

    @property
    def tag(self) -> str:
        """What its blocks are called."""
        ...

    def end(self, text: str, start: int, indent: int) -> End:
        """Where a block ends whose body begins at `start`, and whose opening tag has this indentation."""
        ...

    def read(self, block: Block, known: Known) -> Draft | NotRun:
        """The call in this block."""
        ...

    def write(self, call: ToolCall) -> str:
        """This call as a block that reads back as the same call."""
        ...
