"""What the house asks of the world outside, as protocols; and the codec at the rim. No third-party type crosses."""
