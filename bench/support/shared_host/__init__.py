"""Attacks on `footplate dev` on a shared host, by another local user and by a web page."""
