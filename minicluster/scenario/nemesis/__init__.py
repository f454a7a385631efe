"""Scenarios drawn from seeds: kinds of faults, sequences of them, and what a seed makes of both."""

from minicluster.scenario.nemesis.draws import NOTHING, Draws, Needs, seed_text
from minicluster.scenario.nemesis.generating import KINDS, generate

__all__ = ["KINDS", "NOTHING", "Draws", "Needs", "generate", "seed_text"]
