"""Workspaces on git: snapshots, worktrees, and how work comes back to a person's tree."""
