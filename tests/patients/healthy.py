"""Layers and functions in which the doctor must find nothing: several conventions, forms and styles."""
HEALTHY = {}
