"""The commands of the command line: names, options and help. Implementations are imported when a command runs."""
