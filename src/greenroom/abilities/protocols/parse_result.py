"""The results of parsing a reply: no block, a call, or a rejected block with the reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from typing import Literal, Protocol

from greenroom.core.base.records import record
from greenroom.core.ports.model import ToolCall, ToolSpec


@record
class BlockEnd:
    """Where a body and its block end. `sure`: the position is certain. `tagged`: there is an end tag."""

    stop: int
    after: int
    sure: bool
    tagged: bool


@record
class Block:
    """A block to run: its attributes, its raw body, and how certain its end is. `clear` means that nothing follows the
    block on its last line. `indent` is the indentation of its opening tag."""

    tag: str
    attributes: str
    body: str
    line: int
    sure: bool
    tagged: bool
    clear: bool = True
    indent: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the block is complete, as far as its form shows."""
        return self.clear and (self.sure or self.tagged)


EndFinder = Callable[[str, int, int], BlockEnd]


@record
class BlockScan:
    """All blocks of a reply, why they are in doubt, the remaining text, and a hint for the model."""

    blocks: tuple[Block, ...]
    doubt: str
    said: str
    hint: str


ProtocolName = Literal["tool_call", "xml_tool", "send_message", "patch", "rewrite"]

MultiBlockPolicy = Literal["reject", "first"]
"""What happens to a reply with several blocks: none runs, or only the first."""


@record
class NoBlock:
    """There is no block to run. `said` is the reply without the reasoning. `hint` tells the model about a complete
    block in a place where blocks do not run, for example in a code fence."""

    said: str = ""
    hint: str = ""


@record
class BlockCall:
    """One call to run. The caller assigns its `call_id`, because text has none.

    `said` is the text around the block. `notes` are reminders for the model. `dropped` are the blocks that the policy
    `first` left out. `repaired` means that the call was repaired before it could be parsed.
    """

    call: ToolCall
    protocol: ProtocolName
    said: str = ""
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    repaired: bool = False


@record
class BlockRejection:
    """One or more blocks, none of which ran. `repaired` is a complete block to send instead, if there is one."""

    why: str
    repaired: str = ""

    def __str__(self) -> str:
        if not self.repaired:
            return self.why
        return f"{self.why}\nIf this is what you mean, send exactly this:\n{self.repaired}"


ParsedReply = NoBlock | BlockCall | BlockRejection


@record
class ParseContext:
    """What a block is parsed against: tools by name, the tools without side effects, and the possible receivers.
    `ended` is True if the model stopped by itself, False if it was cut off, None if that is unknown. With an `arbiter`
    a message may name no receiver."""

    tools: Mapping[str, ToolSpec]
    pure: Container[str]
    agents: Collection[str]
    ended: bool | None
    arbiter: bool = False


@record
class CallDraft:
    """A parsed call. `repaired` names what was repaired. `unended` means that the call may be incomplete."""

    call: ToolCall
    repaired: str = ""
    unended: bool = False


class TextProtocol(Protocol):
    """A way to write a call as text."""

    @property
    def name(self) -> ProtocolName:
        """The name of the protocol and of its prompt."""
        ...

    @property
    def tag(self) -> str:
        """The tag of its blocks."""
        ...

    def find_end(self, text: str, start: int, indent: int) -> BlockEnd:
        """Find the end of a block whose body begins at `start` and whose opening tag has this indentation."""
        ...

    def read(self, block: Block, known: ParseContext) -> CallDraft | BlockRejection: ...

    def write(self, call: ToolCall) -> str:
        """Write this call as a block that parses to the same call."""
        ...
