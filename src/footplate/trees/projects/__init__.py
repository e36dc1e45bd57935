"""Repositories of projects: sources, mirrors and instructions."""
