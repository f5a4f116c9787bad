"""The small trained model that comes with the package."""

from ebert.starter.get import get_starter

__all__ = ["get_starter"]
