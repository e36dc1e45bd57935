"""The permission gate: decides whether a tool call is allowed, denied or needs approval, and why.

Evaluating rules has no side effects. Separate modules run hooks and access the file system.
"""
