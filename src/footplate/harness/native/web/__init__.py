"""The tools `web_fetch` and `web_search`. They run in the worker, not in the environment."""
