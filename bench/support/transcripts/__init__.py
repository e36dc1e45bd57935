"""Transcripts of the plain CLI, made by itself, that travel to Footplate and back."""
