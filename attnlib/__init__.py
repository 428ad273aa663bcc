"""Attention, step by step: the finished reference implementations of the course."""

__version__ = "0.1.0"
