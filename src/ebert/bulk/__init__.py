"""Bulk work: link, encode or probe every row of a corpus, on all cores or on a cluster, and continue after a kill.

Inputs are cut into shards of so many rows, and what comes of a shard is one Parquet file. The batches that the encoder
sees never reach over a shard, so that the same shard gives the same bytes on whatever engine, however often it is done,
where workers have as many cores of the same kind. There is one exception: a shard at which workers died twice is done
row by row, and other batches may change the last digits of its numbers.
"""
