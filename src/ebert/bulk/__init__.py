"""Bulk work: link, encode or probe every row of a corpus, on all cores or on a cluster, and go on after a kill.

Inputs are cut into shards of so many rows, and what comes of a shard is one Parquet file. The batches that the encoder
sees never reach over a shard, so that the same shard gives the same bytes on whatever engine, however often it is done.
"""
