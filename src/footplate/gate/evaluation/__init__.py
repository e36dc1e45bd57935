"""Decides tool calls and shell commands by evaluating the rules of a policy. It has no side effects."""
