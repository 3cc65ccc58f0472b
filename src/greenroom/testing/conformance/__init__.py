"""What every adapter of a port must do, as tests to inherit from. Only these modules import pytest."""
