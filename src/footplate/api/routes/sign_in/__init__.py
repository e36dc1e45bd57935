"""Routes that sign people and programs in: API keys, one-time codes, OpenID Connect and device authorization."""
