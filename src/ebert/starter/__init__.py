"""The small trained model that comes with the package."""
