"""Runs side by side, and an agent that calls two others at the same time."""

import asyncio

from greenroom import Agent, Greenroom

botanist = Agent("botanist", "Answer in one line.", description="knows plants")
historian = Agent("historian", "Answer in one line.", description="knows history")
editor = Agent("editor", "Ask both experts, then write two lines.", agents=[botanist, historian])


async def main() -> None:
    topics = ("green tea", "black tea", "white tea")
    async with Greenroom(max_cost=1.0) as greenroom:
        results = await asyncio.gather(*(greenroom.run(editor, f"Write about {topic}.") for topic in topics))
    for topic, result in zip(topics, results, strict=True):
        print(f"{topic}: {result.output}")


if __name__ == "__main__":
    asyncio.run(main())
