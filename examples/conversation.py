"""A conversation that another process can continue: `python conversation.py`, then `python conversation.py ID`."""

import asyncio
import sys

from greenroom import Agent, Greenroom

tutor = Agent("tutor", "You teach French. Answer in one sentence.")


async def main(resume: str = "") -> None:
    async with Greenroom() as greenroom, greenroom.chat(tutor, resume=resume) as conversation:
        for turn in await conversation.turns():
            print(f"you: {turn.prompt}")
            print(f"tutor: {turn.answer}")
        for question in ("What does 'bonjour' mean?", "And 'bonsoir'?"):
            print(f"you: {question}")
            print(f"tutor: {(await conversation.send(question)).output}")
        print(f"Continue with: python conversation.py {conversation.id}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
