"""Benchmarks: one file per NAME with `run()` and `GOALS`. Start one with `./go bench NAME`.

`run()`, plain or async, returns figures by name. `GOALS` limits some of them: `{"cpu_ms_per_step": ("<=", 0.15)}`.
"""
