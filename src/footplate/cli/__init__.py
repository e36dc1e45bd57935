"""The command line. Each command is thin: it reads settings, calls one function below and says what happened."""
