"""A shard's index on disk: its store, its owner, and how it is opened, kept warm and restored.

`lsh.index` decides verdicts. It reads a store without changing it; decisions are applied to the
store once the transaction has committed.
"""
