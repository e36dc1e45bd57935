"""Tests of metrics, logs and error reports."""
