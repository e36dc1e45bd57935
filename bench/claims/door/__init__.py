"""Claims about the API, the SDKs, the command line and telemetry."""
