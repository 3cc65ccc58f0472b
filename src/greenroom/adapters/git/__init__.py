"""Workspaces on git: snapshots, worktrees, and applying a change to the person's tree."""
