"""The web tools `web_fetch` and `web_search`, which run in the worker instead of the environment."""
