"""The permission gate: decides whether a tool call is allowed, denied or needs approval, and why.

Evaluating rules has no side effects. Hooks and file system access are in modules of their own.
"""
