"""Objectives and their parts, found by the name that a recipe uses."""

from crosslign.objectives.contract import Objective, Part
from crosslign.registry import Registry

OBJECTIVES: Registry[type[Objective]] = Registry("objective", "crosslign.objectives.terms")
PARTS: Registry[type[Part]] = Registry("part", "crosslign.objectives.parts")
