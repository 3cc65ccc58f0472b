"""Print text and tool calls while they happen."""

import asyncio

from greenroom import (
    Agent,
    ReasoningDelta,
    RetryScheduled,
    RunResult,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    tool,
)


@tool(effect="pure")
def population(city: str) -> int:
    """How many people live in a city."""
    return {"Paris": 2_100_000, "Lyon": 520_000}[city]


async def main() -> None:
    guide = Agent("guide", "Look every number up.", tools=[population])
    async for event in guide.stream("How many people live in Paris?"):
        match event:
            case TextDelta(text=text):
                print(text, end="", flush=True)
            case ReasoningDelta():
                pass
            case ToolCallStarted(tool=name, arguments=arguments):
                print(f"→ {name} {arguments}")
            case ToolCallFinished(output=output):
                print(f"← {output}")
            case RetryScheduled():
                print("\nThe provider failed; the turn starts again.")
            case RunResult(run_id=run_id):
                print(f"\nrun {run_id}")


if __name__ == "__main__":
    asyncio.run(main())
