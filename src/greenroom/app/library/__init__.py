"""The library: with a decorator, a class and a call people build their own agents. All of it is the one system."""
