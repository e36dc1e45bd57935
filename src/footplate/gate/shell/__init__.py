"""Parses command lines into simple commands, redirects and assignments, and determines the effects of each command.

For text that cannot be parsed completely, the result contains a reason, so that the command is never allowed by
default.
"""
