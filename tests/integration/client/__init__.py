"""The client against a server that answers, fails and hangs up exactly as told."""
