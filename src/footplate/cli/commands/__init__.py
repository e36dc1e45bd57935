"""Definitions of the commands: names, options and help texts. A command imports its implementation when it runs."""
