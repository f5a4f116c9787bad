"""Bulk work and the reading of dumps on a Ray cluster (extra ``ray``)."""
