"""`python -m greenroom.testing.fake_openai SCRIPT`: a fake server that serves until stdin ends."""

from greenroom.testing.fake_openai.process import main

main()
