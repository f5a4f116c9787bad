"""Training vectors of words and entities from a corpus."""

from ebert.vectors.training.options import PRESETS, TrainingOptions, preset
from ebert.vectors.training.run import train

__all__ = ["PRESETS", "TrainingOptions", "preset", "train"]
