"""What comes on stdin, line by line: a text of several lines is one, whatever else happens meanwhile."""

import asyncio
import os

from greenroom.app.conversation.people import Woken, Written
from greenroom.cli.interactive.lines import PlainLines


async def test_news_between_two_lines_of_a_text_take_nothing_away_from_it() -> None:
    reading, writing = os.pipe()
    lines, news = PlainLines(reading), asyncio.Event()
    news.set()
    os.write(writing, b'"""\nDo NOT delete the files.\n')
    assert {await lines.write("› ", news) for _ in range(1000)} == {Woken()}
    news.clear()
    os.write(writing, b'Delete the caches.\n"""\n')
    os.close(writing)
    assert await lines.write("› ", news) == Written(text='"""\nDo NOT delete the files.\nDelete the caches.\n"""')
