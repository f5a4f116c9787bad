"""Readers of entity-linking data: whatever the layout, documents come out, and what was dropped is counted."""

from ebert.linking.readers.labelled import Label, Labelled, Reading
from ebert.linking.readers.layouts import LAYOUTS, read, recognise

__all__ = ["LAYOUTS", "Label", "Labelled", "Reading", "read", "recognise"]
