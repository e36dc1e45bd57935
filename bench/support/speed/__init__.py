"""The four measurements of `core-8`, each beside the bare thing that it is held against, in the same run."""
