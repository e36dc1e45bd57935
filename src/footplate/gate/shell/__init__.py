"""Parses command lines into simple commands, redirects and assignments, and determines what each command does.

A text that cannot be parsed completely yields a reason, so that it is never allowed by default.
"""
