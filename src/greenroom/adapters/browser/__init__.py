"""A Chromium of this machine: started apart, led through playwright, out only by a gate, and dead when it is over."""
