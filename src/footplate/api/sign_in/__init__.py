"""Signing in through an identity provider with OpenID Connect."""
