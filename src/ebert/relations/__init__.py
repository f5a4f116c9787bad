"""The relation between two entities in a sentence (Section 4.2 of the paper)."""

from ebert.relations.classifier import Prediction, RelationClassifier
from ebert.relations.data import Sample, Span
from ebert.relations.options import TrainingOptions
from ebert.relations.resolving import ResolvingOptions
from ebert.relations.variants import VARIANTS

__all__ = ["VARIANTS", "Prediction", "RelationClassifier", "ResolvingOptions", "Sample", "Span", "TrainingOptions"]
