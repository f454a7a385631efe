"""The pages of the documentation; ``docs.generate`` writes their generated parts."""
