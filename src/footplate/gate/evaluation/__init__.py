"""Decides tool calls and commands by evaluating the rules of a policy. It has no side effects."""
