"""Every metric that a worker exports: its meaning, and what to do about it.

Code counts by these names: ``metrics.add(table.DOCUMENTS, 3, "unique")``.
"""

from __future__ import annotations

from typing import Final

from worker.metrics.metric import Counter, Gauge, Histogram

_STAGES = ("fingerprint", "index", "route")

DOCUMENTS = Counter(
    "verdicts",
    "neardup_documents_total",
    "Published documents by verdict: unique, duplicate, rejected.",
    "This is the throughput. If its rate stays below that of the producers, look at"
    " `neardup_consumer_lag_records`; if documents are rejected, at"
    " `neardup_rejected_total`.",
    labels={"verdict": ("unique", "duplicate", "rejected")},
)
REJECTED = Counter(
    "verdicts",
    "neardup_rejected_total",
    "Documents that could not be read or published, by the code of the reason.",
    "Read the header `neardup-error-reason` of the records on `rejected`, fix the cause, and"
    " run [`neardup redrive`](topics.md#what-was-rejected). For `poison` see [the"
    " runbook](../how-to/runbook.md#a-document-that-kills-its-worker).",
    labels={"reason": ()},
)
FRAMES_REFUSED = Counter(
    "verdicts",
    "neardup_frames_refused_total",
    "Records between the stages that no worker can carry out: frames, whose documents are rejected"
    " as `refused-frame`, and bytes that are no frame, which are passed over.",
    "None should be. See whether anybody but neardup writes to its topics, and [the"
    " runbook](../how-to/runbook.md#a-refused-frame).",
    labels={"stage": ("index", "refingerprint", "route")},
)
TOMBSTONES = Counter(
    "verdicts",
    "neardup_tombstones_total",
    "Tombstones that were copied to both outputs: records without a value, and deletes of"
    " change feeds with `documents.deletes` forget.",
    "Nothing to do: they delete documents from compacted outputs, and [from the"
    " index](../how-to/operate.md#forgetting-a-document).",
)
ALLOWED = Counter(
    "verdicts",
    "neardup_allowed_total",
    "Documents that are unique because a person allowed their text.",
    "Nothing to do: see [corrections](../how-to/correct.md).",
)
TOMBSTONES_UNUSABLE = Counter(
    "verdicts",
    "neardup_tombstones_unusable_total",
    "Tombstones that forget no document, because their key is absent, empty, not what"
    " `documents.key` says, or ignored.",
    "Send tombstones with the [key of the document](topics.md#ids-and-keys), or use"
    " `neardup forget`. A warning in the log names the first.",
)
LATENCY_SECONDS = Histogram(
    "verdicts",
    "neardup_latency_seconds",
    "Seconds from a document's record timestamp to the commit of its verdict.",
    "If `neardup_consumer_lag_records` also grows, start there. If not, check the producers'"
    " clocks: they set the timestamp. The age of old documents that are sent today counts.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 15, 60, 300, 3_600),
)
CONSUMER_LAG_RECORDS = Gauge(
    "stages",
    "neardup_consumer_lag_records",
    "Unread records of the partitions that a stage owns, as of the last fetch.",
    "If it doesn't fall, look at `neardup_watchdog_seconds` first. If that is low, the workers"
    " are too slow for the input: check their CPU and disks, and start more workers"
    " ([how many help](../how-to/operate.md#start-scale-stop)). All shards of *index* read the same"
    " log: take the maximum, never the sum.",
    labels={"stage": (), "topic": (), "partition": ()},
)
CONSUMER_LAG_SECONDS = Gauge(
    "stages",
    "neardup_consumer_lag_seconds",
    "Age in seconds of the oldest unread record of the partitions that a stage owns; 0 if all are"
    " read, or if it owns none. After a start, and until a record was read, the time since then.",
    "As for `neardup_consumer_lag_records`. Records that are fed today with timestamps of long ago"
    " count as old while a worker that has just started reads them.",
    labels={"stage": _STAGES},
)
WATERMARK_AGE_SECONDS = Gauge(
    "stages",
    "neardup_watermark_age_seconds",
    "Age in seconds of the oldest record that a stage has not committed; 0 if there is none. For"
    " *route* this is the watermark of the outputs: everything older is published.",
    "If it grows for *route* and the other stages are not behind, a document waits for an answer:"
    " see whether every shard has an owner (`neardup_assigned_partitions`) and whether one restores"
    " (`neardup_restore_remaining_records`).",
    labels={"stage": _STAGES},
)
TRANSACTIONS = Counter(
    "stages",
    "neardup_transactions_total",
    "Transactions by stage and outcome: committed, aborted, unknown, and completed: the brokers"
    " had committed only a part, and the worker wrote the rest.",
    "Some aborted or unknown transactions are normal while brokers or workers restart; nothing"
    " is lost or duplicated. If they continue, the log says why: most often a broker is down,"
    " or the [link is slow](../how-to/runbook.md#a-slow-link-a-quota).",
    labels={"stage": _STAGES, "outcome": ("committed", "aborted", "unknown", "completed")},
)
TRANSACTION_SECONDS = Histogram(
    "stages",
    "neardup_transaction_seconds",
    "Duration of transactions in seconds, by stage.",
    "Durations near `kafka.transaction_timeout_ms` (4 s by default) mean slow brokers or a"
    " [slow link](../how-to/runbook.md#a-slow-link-a-quota).",
    labels={"stage": _STAGES},
    buckets=(0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.5, 5, 10),
)
RECORDS = Counter(
    "stages",
    "neardup_records_total",
    "Records read, by stage: documents, or frames of many documents.",
    "Nothing to do: it shows that a stage reads. Records that are read again after a rollback"
    " are counted again.",
    labels={"stage": _STAGES},
)
ASSIGNED_PARTITIONS = Gauge(
    "stages",
    "neardup_assigned_partitions",
    "Input partitions that this worker owns, by stage; 0 once the group has taken them away.",
    "The sum over all workers is N for *fingerprint*, P for *index*, and N (P + 1) for"
    " *route*. If it stays lower, a seat is reserved for a worker that is gone: see"
    " [Scaling in for good](../how-to/runbook.md#scaling-in-for-good).",
    labels={"stage": _STAGES},
)
UNREAD_PARTITIONS = Gauge(
    "stages",
    "neardup_unread_partitions",
    "Input partitions that this worker has been assigned and doesn't read, by stage: they were"
    " added to their topics.",
    "What is in them waits. One command has the workers read them ([Partitions were"
    " added](../how-to/runbook.md#partitions-were-added)).",
    labels={"stage": _STAGES},
)
REBALANCES = Counter(
    "stages",
    "neardup_rebalances_total",
    "How often a stage started on its partitions: after a rebalance, or after a transaction"
    " was rolled back.",
    "If it grows while no worker starts or stops and all transactions commit, members lose"
    " their sessions: check the network, and `kafka.session_timeout_ms`.",
    labels={"stage": _STAGES},
)
LAST_POLL_TIMESTAMP_SECONDS = Gauge(
    "stages",
    "neardup_last_poll_timestamp_seconds",
    "Time of a stage's last poll, in seconds since the epoch.",
    "Nothing to do: the watchdog checks it. If it stops growing, the stage hangs in a call, or"
    " the machine is overloaded.",
    labels={"stage": ()},
)
INDEX_DOCUMENTS = Counter(
    "index",
    "neardup_index_documents_total",
    "Documents judged by shards, live or replayed after a start; every shard counts each one.",
    "Verdicts wait while a shard replays. If many documents are replayed after each start, use"
    " [snapshots](../how-to/snapshots.md) or a [warm"
    " standby](../how-to/snapshots.md#warm-standby).",
    labels={"kind": ("live", "replayed")},
)
INDEX_CANDIDATES = Counter(
    "index",
    "neardup_index_candidates_total",
    "Earlier documents that shared a bucket with a document and were compared with it.",
    'Compare it with `neardup_index_documents_total{kind="live"}`. The more candidates a'
    " document has, the more CPU it takes; texts that share boilerplate have many.",
)
INDEX_MATCHES = Counter(
    "index",
    "neardup_index_matches_total",
    "Candidates at or above the similarity threshold; at most index.max_matches per document"
    " and shard.",
    "Nothing to do: a small share of the candidates only means that most comparisons find no"
    " match.",
)
INDEX_ABSORBED = Counter(
    "index",
    "neardup_index_absorbed_total",
    "Insertions skipped because the bucket has an entry that stands for the document: an almost"
    " identical one (index.absorb), or, in a hot bucket, a similar one.",
    "Nothing to do: the entry stands for the copy, which takes no space in that bucket.",
)
INDEX_ABSORBED_SIMILAR = Counter(
    "index",
    "neardup_index_absorbed_similar_total",
    "Those of neardup_index_absorbed_total whose entry isn't almost identical, but similar: it"
    " stands for them because its bucket is hot.",
    "Nothing to do. If it grows all the time, many texts share a template, and only the first"
    " of them are compared with later ones.",
)
INDEX_DIVIDED = Counter(
    "index",
    "neardup_index_divided_total",
    "Buckets that became full (index.bucket_capacity): later entries go to overflow buckets.",
    "Nothing to do: nothing is forgotten. If it grows all the time, many texts share a"
    " template, and each costs more comparisons: `neardup index stats --buckets` shows a"
    " document of each of the largest buckets. See whether their common lines can be [left"
    " out](../how-to/offline.md#footers-menus-cookie-banners).",
)
INDEX_DROPPED = Counter(
    "index",
    "neardup_index_dropped_total",
    "Entries evicted, oldest first, because a bucket of the finest level was full.",
    "A later copy of a document whose entries were evicted may be judged unique. If that"
    " matters, run a new application with a larger `index.bucket_capacity`"
    " ([how](../how-to/runbook.md#more-shards-p-other-parameters)).",
)
INDEX_OLDER = Counter(
    "index",
    "neardup_index_older_total",
    "Documents dated more than index.window before now when they came: they count as of now;"
    " every shard counts each one.",
    "Nothing to do if an archive is fed, or if some dates are wrong. If nearly all documents"
    " count here, now is ahead of them, and nothing expires until they catch up: see [Wrong"
    " dates](../how-to/operate.md#wrong-dates).",
)
INDEX_REPEATED = Counter(
    "index",
    "neardup_index_repeated_total",
    "Documents that were sent again and ignored, if `index.same_id` is `ignore`; every shard"
    " counts each one.",
    "Nothing to do if a producer sends again what it isn't sure of. If there are many, see"
    " [The same id again](../how-to/operate.md#the-same-id-again).",
)
INDEX_EXPIRED_TIME_SLICES = Counter(
    "index",
    "neardup_index_expired_time_slices_total",
    "Time slices of shards that were given back whole, because every entry in them was older than"
    " index.window. A window has about 8 time slices.",
    "Nothing to do: with `index.window` it grows as long as documents come in.",
)
INDEX_OLDEST_SECONDS = Gauge(
    "index",
    "neardup_index_oldest_seconds",
    "How many seconds before now the oldest time slice of a shard began, in the documents' own"
    " time.",
    "With `index.window` it stays at about 9/8 of the window, or up to 17/8 if documents are"
    " dated ahead of now; beyond that, space waits to be given back. Without a window it grows"
    " for ever.",
    labels={"shard": ()},
)
INDEX_BYTES = Gauge(
    "index",
    "neardup_index_bytes",
    "Size of a shard on disk, in bytes.",
    "Size the disk by it. `neardup_state_disk_bytes` says what is left.",
    labels={"shard": ()},
)
INDEX_KEYS = Gauge(
    "index",
    "neardup_index_keys",
    "Number of records and postings of a shard. A posting is a bucket, or marks one that has"
    " grown.",
    "Nothing to do: it grows with the documents that are not copies.",
    labels={"shard": ()},
)
INDEX_KEPT_DOCUMENTS = Gauge(
    "index",
    "neardup_index_kept_documents",
    "Documents that a shard has records of. A copy that other entries stand for has none.",
    "Divide `neardup_index_bytes` by it for what a document takes on disk. With"
    " `index.window` it levels off; without a window it grows for ever.",
    labels={"shard": ()},
)
INDEX_TIME_SLICES = Gauge(
    "index",
    "neardup_index_time_slices",
    "Time slices of a shard that are kept; without index.window there is one.",
    "With `index.window` there are about 9 or 10, or up to 18 if documents are dated ahead of"
    " [now](../how-to/operate.md#how-long-the-index-remembers).",
    labels={"shard": ()},
)
INDEX_RUNS = Gauge(
    "index",
    "neardup_index_runs",
    "Sorted runs of a shard by level: 0 for the newest and shortest. `memtable` is the one in"
    " memory that grows.",
    "Nothing to do: eight runs of a level become one of the next, so there are at most about 9.",
    labels={"shard": (), "level": ()},
)
INDEX_POSTINGS = Gauge(
    "index",
    "neardup_index_postings",
    "Postings in a shard's runs by level. A posting is a bucket, or marks one that has grown.",
    "Nothing to do: the memtable is in memory, and so are the filters of all others.",
    labels={"shard": (), "level": ()},
)
INDEX_PENDING_COMPACTION_BYTES = Gauge(
    "index",
    "neardup_index_pending_compaction_bytes",
    "Bytes that RocksDB still has to rewrite for a shard, as it estimates; 0 if it is up to date.",
    "Nothing to do if it rises and falls. If it only grows, the disk is too slow: use a faster"
    " one, or share the index among more workers.",
    labels={"shard": ()},
)
INDEX_STALLED_SECONDS = Counter(
    "index",
    "neardup_index_stalled_seconds_total",
    "Seconds for which writes of shards have waited because RocksDB was behind with flushes and"
    " compactions. The worker waits before RocksDB itself would stall.",
    "A rate of 0.1 means that *index* waits for the disk a tenth of the time: use a faster one, or"
    " more memory, so that less is written ([memory](../how-to/operate.md#memory)).",
)
INDEX_MEMORY_BYTES = Gauge(
    "index",
    "neardup_index_memory_bytes",
    "Memory of a shard in bytes: write buffers, open tables, the newest postings, filters.",
    'If `neardup_memory_bytes{part="postings"}` reaches its share, use more memory, a shorter'
    " window, or more shards and workers ([memory](../how-to/operate.md#memory)).",
    labels={"shard": ()},
)
RESTORE_BYTES = Gauge(
    "index",
    "neardup_restore_bytes",
    "Bytes of a snapshot that is being fetched: done, total.",
    "If `done` stops growing, check the snapshots' storage. After"
    " `watchdog.restore_seconds` the worker exits.",
    labels={"shard": (), "part": ()},
)
RESTORE_REMAINING_RECORDS = Gauge(
    "index",
    "neardup_restore_remaining_records",
    "Frames that a shard must read before it answers; while its store is being opened, the"
    " whole log; 0 once it answers.",
    "All verdicts wait for this shard. If it doesn't fall, check the brokers and the disk."
    " If it starts high each time, ship [snapshots](../how-to/snapshots.md) more often.",
    labels={"shard": ()},
)
STANDBY_LAG_RECORDS = Gauge(
    "index",
    "neardup_standby_lag_records",
    "Frames by which a warm standby of a shard is behind its owner, or a shard of `neardup"
    " serve` behind the log.",
    "A takeover has to replay that much. If it stays high, the log says whether the shard can't"
    " be kept warm or this worker is too slow ([warm"
    " standby](../how-to/snapshots.md#warm-standby)).",
    labels={"shard": ()},
)
INDEX_GENERATION = Gauge(
    "index",
    "neardup_index_generation",
    "The generation of the index that this worker has in use. 0 was never reindexed.",
    "If workers differ for more than some seconds, not all see the plan of a reindex: see the"
    " log of those with the lower number ([reindexing](../how-to/reindex.md)).",
)
BUILDING_REMAINING_RECORDS = Gauge(
    "index",
    "neardup_building_remaining_records",
    "Frames that a shard of the next generation still has to read before it is up to date.",
    "`neardup reindex` waits until it is small. If it doesn't fall, the worker lacks CPU"
    " ([reindexing](../how-to/reindex.md)).",
    labels={"shard": ()},
)
REWRITING_REMAINING_RECORDS = Gauge(
    "index",
    "neardup_rewriting_remaining_records",
    "Frames of the log in use of which this worker still has to make new fingerprints.",
    "`neardup reindex --from-documents` waits until it is small. If it doesn't fall, the worker"
    " lacks CPU ([reindexing](../how-to/reindex.md#new-fingerprints)).",
)
REWRITING_DOCUMENTS = Counter(
    "index",
    "neardup_rewriting_documents_total",
    "Documents that were read again for new fingerprints, by outcome: signed, gone (deleted"
    " from documents), unreadable, blank (nothing is left of the text), poison (it killed the"
    " worker).",
    "The new index doesn't know those that were not signed. If `unreadable` or `blank` grow"
    " unexpectedly, see whether the new settings are right, and give the reindex up with"
    " `neardup reindex --abort` while you can"
    " ([reindexing](../how-to/reindex.md#new-fingerprints)).",
    labels={"outcome": ("signed", "gone", "unreadable", "blank", "poison")},
)
QUERIES = Counter(
    "queries",
    "neardup_queries_total",
    "Requests to `neardup serve` by outcome: answered, refused (the request or its only"
    " document can't be read), unready (a shard is warming up or can't be read).",
    "If many are refused, the answers say why. If they are unready, look at `/readyz` and at"
    " the log.",
    labels={"outcome": ("answered", "refused", "unready")},
)
QUERY_SECONDS = Histogram(
    "queries",
    "neardup_query_seconds",
    "Seconds that answering took, without waiting for the answers before and without the"
    " network. Queries that are answered together count all of it each.",
    "If it grows, start more servers ([how](../how-to/query.md#run-a-server)), or ask for fewer"
    " documents at once.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2.5),
)
QUERY_VERDICTS = Counter(
    "queries",
    "neardup_query_verdicts_total",
    "Documents that were asked about, by the verdict they would get: unique, duplicate, rejected.",
    "Nothing to do: nothing of it is published.",
    labels={"verdict": ("unique", "duplicate", "rejected")},
)
SNAPSHOTS = Counter(
    "snapshots",
    "neardup_snapshots_total",
    "Snapshots of shards by outcome: shipped, failed.",
    "The log says why a snapshot failed: most often the storage or its credentials. The worker"
    " tries again at the next interval.",
    labels={"outcome": ("shipped", "failed")},
)
SNAPSHOT_TIMESTAMP_SECONDS = Gauge(
    "snapshots",
    "neardup_snapshot_timestamp_seconds",
    "Time of the newest good snapshot of a shard that this worker owns, whoever shipped it, in"
    " seconds since the epoch. There is no series for a shard without one. The worker looks every"
    " index.snapshots.every_seconds.",
    "The older it is, the longer a restore takes. Without new documents, no snapshot is shipped."
    " If there are new ones, the log says why snapshots fail.",
    labels={"shard": ()},
)
SNAPSHOT_OFFSET = Gauge(
    "snapshots",
    "neardup_snapshot_offset",
    "Offset in fingerprints of that snapshot.",
    "Nothing to do: a restore replays the log from there.",
    labels={"shard": ()},
)
SNAPSHOT_BYTES = Gauge(
    "snapshots",
    "neardup_snapshot_bytes",
    "Size of that snapshot in bytes, including the files that it shares with earlier ones.",
    "Size the storage by it. The `index.snapshots.keep` snapshots of a shard share files, so"
    " together they take less than that many times the size.",
    labels={"shard": ()},
)
SNAPSHOT_DAMAGED_FILES = Counter(
    "snapshots",
    "neardup_snapshot_damaged_files_total",
    "Files of snapshots found damaged or missing when read back, by whether the store still"
    " has them: yes (they are shipped again), no (snapshots are lost).",
    "Alert on any: the storage loses or corrupts data. See"
    " [A damaged index](../how-to/runbook.md#a-damaged-index).",
    labels={"in_store": ("yes", "no")},
)
READY = Gauge(
    "process",
    "neardup_ready",
    "1 if `/readyz` says 200 at this moment, 0 if it says 503.",
    "Ask `/readyz`: it names the stages that have no seat, restore a shard, or catch up. A worker"
    " that has just started is not ready for a while.",
)
STATE_DISK_BYTES = Gauge(
    "process",
    "neardup_state_disk_bytes",
    "Bytes of the file system that has `worker.state_dir`: free for the worker, total. There is no"
    " series while the file system can't be asked.",
    "A worker with a full disk exits. Make the volume larger, set a shorter `index.window`, or"
    " share the index among more workers.",
    labels={"part": ()},
)
WATCHDOG_SECONDS = Gauge(
    "process",
    "neardup_watchdog_seconds",
    "Seconds for which a watch has seen no progress in a stage; the watches are poll,"
    " transaction, progress, restore. At the limit the worker exits.",
    "From a quarter of the limit on, the log says what to check. `poll`: the machine is"
    " overloaded, or a call hangs. `transaction`: the brokers don't answer. `progress`: most"
    " often [a stuck transaction](../how-to/runbook.md#a-stuck-transaction). `restore`: the"
    " snapshots' storage, the disk or the brokers.",
    labels={"stage": (), "watch": ()},
)
WATCHDOG_LIMIT_SECONDS = Gauge(
    "process",
    "neardup_watchdog_limit_seconds",
    "Limit of each watch, in seconds.",
    "Nothing to do: these are the settings [`watchdog.*`](configuration.md#watchdog).",
    labels={"watch": ()},
)
MEMORY_BYTES = Gauge(
    "process",
    "neardup_memory_bytes",
    "Memory in bytes by part: worker, the whole process; cache, the block cache of all shards;"
    " write_buffers, all of theirs; postings, their newest ones and filters; lanes, the documents"
    " that wait for answers, and answers in route; fetched, what Kafka's consumers have fetched"
    " ahead; produced, what the last transaction of each stage put into its producer's queue.",
    "If `worker` passes its share, look for the part that does, too. Most often these are the"
    " `postings`, which grow with the index ([memory](../how-to/operate.md#memory)). A `cache` that"
    " is full is in order.",
    labels={"part": ()},
)
MEMORY_SHARE_BYTES = Gauge(
    "process",
    "neardup_memory_share_bytes",
    "The share of each part, in bytes; that of the worker is worker.memory.",
    "Nothing to do: shares follow from [`worker.memory`](configuration.md#worker).",
    labels={"part": ()},
)
QUEUED_MESSAGES = Gauge(
    "process",
    "neardup_queued_messages",
    "Messages in the queues of Kafka's clients: fetched ahead by consumers, and produced by the"
    " last transaction of each stage. librdkafka tells of what is fetched every 5 s.",
    "Nothing to do: if `fetched` stays near 0 while there is lag, the brokers or the network"
    " are slow; if it stays high, the stages are.",
    labels={"part": ()},
)
KAFKA_SILENT_SECONDS = Gauge(
    "process",
    "neardup_kafka_silent_seconds",
    "Seconds for which no broker has answered this worker; 0 while Kafka answers. The worker"
    " asks every 2 s.",
    "Check the brokers, and the network between them and the worker. Beyond"
    " `kafka.session_timeout_ms` `/readyz` is 503, and the groups give the worker's partitions"
    " to others.",
)
REFUSED_SETTINGS = Gauge(
    "process",
    "neardup_refused_settings",
    "Settings of topics with which no worker would start, as found by the last check"
    " (`worker.check_seconds`).",
    "Set them back: `neardup topics verify` has the commands. If they stay for half a minute"
    " more, the workers end.",
)
BUILD_INFO = Gauge(
    "process",
    "neardup_build_info",
    "Always 1; the label is the version of the worker.",
    "Nothing to do: it shows which workers run which version.",
    labels={"version": ()},
)

TABLE: Final = tuple(
    value for value in list(globals().values()) if isinstance(value, Counter | Gauge | Histogram)
)
"""All metrics, in the order of this file."""
