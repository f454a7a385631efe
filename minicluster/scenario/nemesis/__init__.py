"""Scenarios drawn from seeds: kinds of faults, sequences of them, and what a seed makes of both."""

from minicluster.scenario.nemesis.draws import Draws, seed_text
from minicluster.scenario.nemesis.generating import KINDS, generate
from minicluster.scenario.nemesis.on_zookeeper import generate_on_zookeeper

__all__ = ["KINDS", "Draws", "generate", "generate_on_zookeeper", "seed_text"]
