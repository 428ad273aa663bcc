"""Sick layers, made from real mistakes, each with the fault that the doctor must name first; and healthy ones."""

from . import axes, blocks, healthy, layers, masks, production, weights, written
from .base import Patient

PATIENTS: dict[str, Patient] = masks.PATIENTS | weights.PATIENTS | layers.PATIENTS | blocks.PATIENTS
PATIENTS |= axes.PATIENTS | production.PATIENTS
HEALTHY = healthy.HEALTHY | written.HEALTHY
