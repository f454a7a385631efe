"""A second play that plays nothing: it prints the hash seed under which it runs."""

from __future__ import annotations

import os
import sys

sys.stdin.read()
sys.stdout.write(os.environ["PYTHONHASHSEED"] + "\n")
