"""Runs the same work on Footplate and on comparable servers, and kills each of them in the middle of a tool call."""
