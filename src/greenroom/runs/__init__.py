"""One run in a worktree: its checks, the baseline, the verdict on the change, and its delivery."""
