"""Permission rules, approvals, hooks and the replay of past calls."""
