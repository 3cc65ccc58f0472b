"""`python -m tests.fake_openai SCRIPT`: a fake server that serves until stdin ends."""

from tests.fake_openai.process import main

main()
