"""Implementations of the commands. `footplate.cli.commands` defines their names, options and help texts."""
