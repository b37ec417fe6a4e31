import msgspec
import pytest

from tests.support.plans import taken_over
from tests.worker.admin.fake import FakeCluster
from worker.admin.accept_cut import accept_cut
from worker.admin.checks import inspect
from worker.admin.cluster import TopicState
from worker.bus import Offset, TopicPartition
from worker.generations.generation import Generation
from worker.generations.log import PLAN_KEY, dump
from worker.generations.plan import Plan
from worker.generations.turns import SEALED, WAITING
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings


@pytest.fixture
def settings() -> Settings:
    return load(overrides={"app": "a"})


def said(cluster: FakeCluster, settings: Settings) -> list[str]:
    return [f"{p.severity} {p}" for p in inspect(cluster.as_cluster(), settings).problems]


def test_what_create_makes_is_in_order(settings: Settings) -> None:
    assert said(FakeCluster(settings), settings) == []


@pytest.mark.parametrize(
    ("topic", "change", "expected"),
    [
        ("a.documents", {"cleanup_policy": "compact"}, "error a.documents: cleanup.policy"),
        ("a.documents", {"cleanup_policy": "compact,delete"}, "error a.documents: cleanup.policy"),
        ("a.unique", {"cleanup_policy": "compact"}, "warning a.unique: cleanup.policy"),
        ("a.rejected", {"cleanup_policy": "compact"}, "error a.rejected: cleanup.policy"),
        ("a.fingerprints", {"cleanup_policy": "compact"}, "error a.fingerprints: cleanup.policy"),
        ("a.shards", {"cleanup_policy": "compact"}, "error a.shards: cleanup.policy"),
        (
            "a.fingerprints",
            {"message_timestamp_type": "CreateTime"},
            "error a.fingerprints: message.timestamp.type",
        ),
        (
            "a.matches-0",
            {"message_timestamp_type": "CreateTime"},
            "warning a.matches-0: message.timestamp.type",
        ),
        (
            "a.unique",
            {"message_timestamp_type": "LogAppendTime"},
            "warning a.unique: message.timestamp.type",
        ),
        ("a.fingerprints", {"retention_ms": "3600000"}, "error a.fingerprints: retention.ms"),
        ("a.fingerprints", {"retention_bytes": "1000000"}, "error a.fingerprints: retention.bytes"),
        ("a.matches-1", {"retention_ms": "3600000"}, "error a.matches-1: retention.ms"),
        ("a.unique", {"max_message_bytes": "1000000"}, "error a.unique: max.message.bytes"),
        (
            "a.fingerprints",
            {"max_message_bytes": "500000"},
            "error a.fingerprints: max.message.bytes",
        ),
        ("a.documents", {"max_message_bytes": "90000000"}, "error a.rejected: max.message.bytes"),
        ("a.shards", {"min_insync_replicas": "1"}, "warning a.shards: min.insync.replicas"),
        ("a.shards", {"min_insync_replicas": "3"}, "warning a.shards: min.insync.replicas"),
        ("a.shards", {"min_insync_replicas": "4"}, "error a.shards: min.insync.replicas"),
        (
            "a.shards",
            {"unclean_leader_election_enable": "true"},
            "warning a.shards: unclean.leader.election.enable",
        ),
        ("a.unique", {"compression_type": "zstd"}, "warning a.unique: compression.type"),
    ],
)
def test_a_wrong_setting_is_named(
    settings: Settings, topic: str, change: dict[str, str], expected: str
) -> None:
    cluster = FakeCluster(settings)
    cluster.change(topic, **change)
    assert any(line.startswith(expected) for line in said(cluster, settings))


def test_a_longer_retention_of_matches_is_fine(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    cluster.change("a.matches-0", retention_ms="-1")
    assert said(cluster, settings) == []


def test_outputs_must_take_every_time_that_documents_take(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    cluster.change("a.documents", message_timestamp_after_max_ms="9223372036854775807")
    cluster.change("a.duplicate", message_timestamp_after_max_ms="3600000")
    [line] = said(cluster, settings)
    assert line.startswith("error a.duplicate: message.timestamp.after.max.ms is 3600000")


@pytest.mark.parametrize(
    "topic", ["a.documents", "a.fingerprints", "a.rejected", "a.shards", "a.matches-1"]
)
def test_a_missing_topic_is_named(settings: Settings, topic: str) -> None:
    cluster = FakeCluster(settings)
    cluster.states[topic] = None
    assert f"error {topic}: the topic is missing, must be there" in said(cluster, settings)


@pytest.mark.parametrize(
    ("topic", "severity"),
    [("a.fingerprints", "error"), ("a.shards", "error"), ("a.documents", "warning"),
     ("a.matches-0", "warning"), ("a.unique", "warning"), ("a.rejected", "warning")],
)  # fmt: skip
def test_a_wrong_partition_count_is_named(settings: Settings, topic: str, severity: str) -> None:
    cluster = FakeCluster(settings)
    state = cluster.states[topic]
    assert state is not None
    cluster.states[topic] = TopicState(9, state.replicas, state.settings)
    assert any(
        line.startswith(f"{severity} {topic}: its number of partitions is 9")
        for line in said(cluster, settings)
    )


def resized(cluster: FakeCluster, topic: str, partitions: int) -> FakeCluster:
    state = cluster.states[topic]
    assert state is not None
    cluster.states[topic] = TopicState(partitions, state.replicas, state.settings)
    return cluster


def begun(settings: Settings) -> FakeCluster:
    """Return an application that has processed something."""
    cluster = FakeCluster(settings)
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 5)
    return cluster


@pytest.mark.parametrize("topic", ["a.documents", "a.matches-0"])
def test_partitions_that_were_added_wait_for_a_command(settings: Settings, topic: str) -> None:
    cluster = resized(begun(settings), topic, 3)
    found = inspect(cluster.as_cluster(), settings)
    [problem] = found.problems
    assert str(problem).startswith(f"{topic}: its number of partitions is 3, must be 2, as many as")
    assert problem.severity == "warning"
    assert problem.fix == "neardup reindex --partitions 3"
    assert found.topology.layout.partitions == 2


@pytest.mark.parametrize("topic", ["a.documents", "a.matches-0"])
def test_fewer_partitions_than_are_read_are_an_error(settings: Settings, topic: str) -> None:
    found = inspect(resized(begun(settings), topic, 1).as_cluster(), settings).problems
    [problem] = [one for one in found if one.what == "its number of partitions"]
    assert (problem.severity, problem.has) == ("error", "1")


def test_more_partitions_than_an_application_began_with_are_read(settings: Settings) -> None:
    """Its plan says so; the topics have as many, and the workers agree on what they began with."""
    cluster = begun(settings)
    wide = FakeCluster(settings, partitions=3)
    for name in ("a.documents", "a.unique", "a.duplicate", "a.matches-0", "a.matches-1"):
        resized(cluster, name, 3)
    cluster.offsets = wide.offsets
    cluster.ends |= {place: span for place, span in wide.ends.items() if place not in cluster.ends}
    cluster.records["a.layout"][PLAN_KEY] = dump(Plan.of(settings).widen(2, 3))
    found = inspect(cluster.as_cluster(), settings)
    assert found.topology.layout.partitions == 3
    assert [one for one in found.problems if one.severity == "error"] == []


def reindexed(cluster: FakeCluster, settings: Settings, threshold: float) -> FakeCluster:
    """Have a generation in use that has another threshold than the one before."""
    following = msgspec.structs.replace(Generation.of(settings), threshold=threshold)
    plan = taken_over(Plan.of(settings), following)
    cluster.records["a.layout"][PLAN_KEY] = dump(plan)
    own = plan.topology(settings, 2)
    made = FakeCluster(settings, generations=plan)
    cluster.states |= made.states
    cluster.offsets |= {
        own.group(stage): made.offsets[own.group(stage)] for stage in ("index", "route")
    }
    return cluster


def test_settings_from_before_a_reindex_are_a_warning(settings: Settings) -> None:
    cluster = reindexed(FakeCluster(settings), settings, 0.9)
    (line,) = said(cluster, settings)
    assert line.startswith(
        "warning a.layout: similarity.threshold is 0.8 here, must be 0.9, as in generation 1,"
    )
    after = load(overrides={"app": "a", "similarity.threshold": 0.9})
    assert said(cluster, after) == []


@pytest.mark.parametrize(
    ("topic", "codec"),
    [("a.documents", "lz4"), ("a.documents", "zstd"), ("a.unique", "lz4"), ("a.matches-0", "lz4")],
)
def test_a_codec_that_makes_no_broker_pack_anew_is_no_problem(
    settings: Settings, topic: str, codec: str
) -> None:
    cluster = FakeCluster(settings)
    cluster.change(topic, compression_type=codec)
    assert said(cluster, settings) == []


def test_the_codec_is_that_of_the_workers(settings: Settings) -> None:
    zstd = load(overrides={"app": "a", "kafka.producer": {"compression.type": "zstd"}})
    cluster = FakeCluster(settings)
    cluster.change("a.unique", compression_type="zstd")
    assert said(cluster, zstd) == []
    cluster.change("a.unique", compression_type="lz4")
    (line,) = said(cluster, zstd)
    assert "must be producer, or zstd" in line


def test_before_anything_was_processed_settings_can_still_be_changed(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    own = load(overrides={"app": "a", "similarity.seed": "a secret of many bytes"})
    (problem,) = inspect(cluster.as_cluster(), own).problems
    assert problem.fix.startswith("`neardup init --accept`")
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 1)
    assert "neardup init" not in inspect(cluster.as_cluster(), own).problems[0].fix


def test_before_anything_was_processed_missing_partitions_can_be_added(settings: Settings) -> None:
    cluster = resized(FakeCluster(settings, partitions=3), "a.matches-0", 2)
    found = inspect(cluster.as_cluster(), settings).problems
    [problem] = [one for one in found if one.what == "its number of partitions"]
    assert problem.fix == (
        "kafka-topics.sh --bootstrap-server ... --alter --topic a.matches-0 --partitions 3"
    )


@pytest.mark.parametrize("processed", [False, True])
@pytest.mark.parametrize("number", [1, 9])
def test_no_fix_deletes_a_topic_or_its_records(
    settings: Settings, *, processed: bool, number: int
) -> None:
    for topic in FakeCluster(settings).states:
        cluster = resized(begun(settings) if processed else FakeCluster(settings), topic, number)
        cluster.change(topic, cleanup_policy="compact,delete", retention_ms="1000")
        for problem in inspect(cluster.as_cluster(), settings).problems:
            assert "--delete" not in problem.fix
            assert "delete the" not in problem.fix
            if "cleanup.policy=delete" in problem.fix:
                assert problem.fix.endswith(
                    "cleanup.policy=delete,retention.ms=-1,retention.bytes=-1"
                )


def test_a_group_without_offsets_is_an_error(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    del cluster.offsets["a.route"]
    [line] = said(cluster, settings)
    assert "group a.route: its offset of a.documents[0] is missing (and 5 more)" in line


def test_offsets_are_set_by_a_command_only_before_work_has_begun(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    del cluster.offsets["a.fingerprint"]
    for end, fix in ((0, "neardup init --from "), (5, "see the runbook, 'Expired group offsets'")):
        cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, end)
        found = inspect(cluster.as_cluster(), settings).problems
        (problem,) = (one for one in found if one.has.startswith("missing"))
        assert problem.fix.startswith(fix)


@pytest.mark.parametrize(
    ("group", "topic", "ends", "why"),
    [
        ("a.fingerprint", "a.documents", (10, 20), "documents were deleted before they were read"),
        ("a.index", "a.shards", (10, 20), "frames were deleted before the shard had read them"),
        ("a.index", "a.shards", (0, 4), "this is not the topic that was read"),
        ("a.route", "a.matches-1", (0, 4), "this is not the topic that was read"),
    ],
)
def test_an_offset_outside_the_log_is_an_error(
    settings: Settings, group: str, topic: str, ends: tuple[int, int], why: str
) -> None:
    cluster = FakeCluster(settings)
    for own in ("a.fingerprint", "a.route"):
        cluster.offsets[own][TopicPartition("a.documents", 0)] = 5
    place = TopicPartition(topic, 0)
    cluster.offsets[group][place] = 5
    cluster.ends[TopicPartition("a.documents", 0)] = (0, 5)
    cluster.ends[cluster.topology.log_of(place)] = ends
    expected = f"error group {group}: its offset of {topic}[0] is 5, must be an offset from"
    assert any(
        line.startswith(expected) and line.endswith(f"({why})") for line in said(cluster, settings)
    )


def emptied(settings: Settings) -> FakeCluster:
    """Return an application that was idle until retention had emptied all it could.

    Each group is where the last record ended, and behind that lay the transaction's marker.
    """
    cluster = FakeCluster(settings)
    for number in (0, 1):
        documents = TopicPartition("a.documents", number)
        cluster.offsets["a.fingerprint"][documents] = cluster.offsets["a.route"][documents] = 50
        cluster.ends[documents] = (0, 50)
        for shard in (0, 1):
            answers = TopicPartition(f"a.matches-{shard}", number)
            cluster.offsets["a.route"][answers] = 19
            cluster.ends[answers] = (20, 20)
        cluster.offsets["a.index"][TopicPartition("a.shards", number)] = 39
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 40)
    return cluster


def test_a_log_that_retention_has_emptied_is_in_order(settings: Settings) -> None:
    assert said(emptied(settings), settings) == []


def test_documents_deleted_unread_are_an_error_unless_they_may_be_skipped(
    settings: Settings,
) -> None:
    cluster = emptied(settings)
    documents = TopicPartition("a.documents", 1)
    cluster.offsets["a.fingerprint"][documents] = 30
    cluster.offsets["a.route"][documents] = 30
    cluster.ends[documents] = (40, 50)
    [line] = said(cluster, settings)
    assert line.startswith("error group a.fingerprint: its offset of a.documents[1] is 30, must be")
    skipping = settings.documents.model_copy(update={"skip_deleted": True})
    [line] = said(cluster, settings.model_copy(update={"documents": skipping}))
    assert line.startswith("warning group a.fingerprint: its offset of a.documents[1] is 30")


def test_frames_deleted_before_they_were_read_are_an_error(settings: Settings) -> None:
    cluster = emptied(settings)
    cluster.offsets["a.index"][TopicPartition("a.shards", 1)] = 30
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (39, 40)
    [line] = said(cluster, settings)
    assert line.startswith(
        "error group a.index: its offset of a.shards[1] is 30, must be an offset from 39 to 40"
        " (frames were deleted before the shard had read them)"
    )


@pytest.mark.parametrize(
    ("at", "waiting", "lost"),
    [(39, 0, False), (39, 1, False), (37, 0, False), (38, 1, True), (0, 0, True)],
)
def test_with_a_window_the_markers_behind_the_last_frame_may_be_gone(
    at: int, waiting: int, *, lost: bool
) -> None:
    """Several may be where workers wrote in turns: if no document waits, they were no frames."""
    settings = load(overrides={"app": "a", "index.window": "30d"})
    cluster = emptied(settings)
    cluster.offsets["a.index"][TopicPartition("a.shards", 1)] = at
    cluster.offsets["a.route"][TopicPartition("a.documents", 1)] -= waiting
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (40, 40)
    index = [line for line in said(cluster, settings) if line.startswith("error group a.index")]
    assert [line.split(",")[0] for line in index] == (
        [f"error group a.index: its offset of a.shards[1] is {at}"] if lost else []
    )


def test_without_a_window_no_offset_may_be_missing(settings: Settings) -> None:
    cluster = emptied(settings)
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (40, 40)
    [line] = said(cluster, settings)
    assert line.startswith("error group a.index: its offset of a.shards[0] is 39")


def test_documents_deleted_before_they_were_published_are_told(settings: Settings) -> None:
    cluster = emptied(settings)
    documents = TopicPartition("a.documents", 1)
    cluster.offsets["a.route"][documents] = 30
    cluster.ends[documents] = (40, 50)
    for shard in (0, 1):
        cluster.ends[TopicPartition(f"a.matches-{shard}", 1)] = (0, 25)
    [line] = said(cluster, settings)
    assert line.startswith("warning group a.route: its offset of a.documents[1] is 30, must be")
    assert "payload-gone" in line


def test_answers_deleted_before_they_were_read_are_an_error(settings: Settings) -> None:
    cluster = emptied(settings)
    cluster.offsets["a.fingerprint"][TopicPartition("a.documents", 1)] = 50
    cluster.offsets["a.route"][TopicPartition("a.documents", 1)] = 30
    cluster.ends[TopicPartition("a.matches-0", 1)] = (0, 25)  # Of this shard they are there.
    [line] = said(cluster, settings)
    assert line == (
        "error a.matches-1[1]: its start is 20, must be at most 19, where group a.route is (the"
        " answers for a.documents[1] from offset 30 to 50 were deleted before they were read)"
    )


def test_answers_deleted_with_their_documents_hold_nobody_up(settings: Settings) -> None:
    cluster = emptied(settings)
    documents = TopicPartition("a.documents", 1)
    cluster.offsets["a.route"][documents] = 30
    cluster.ends[documents] = (50, 50)
    [line] = said(cluster, settings)
    assert line.startswith("warning group a.route: its offset of a.documents[1] is 30, must be")


@pytest.mark.parametrize(
    ("place", "ends"),
    [
        (TopicPartition("a.fingerprints", 0), (0, 42)),
        (TopicPartition("a.matches-1", 1), (20, 22)),
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_answers_on_their_way_are_not_taken_for_lost(
    settings: Settings, place: TopicPartition, ends: tuple[int, int], *, committed: bool
) -> None:
    cluster = emptied(settings)
    cluster.offsets["a.route"][TopicPartition("a.documents", 1)] = 30
    cluster.ends[TopicPartition("a.matches-0", 1)] = (0, 25)
    (cluster.ends if committed else cluster.written)[place] = ends
    assert said(cluster, settings) == []


def test_route_may_trail_fingerprint_and_not_lead_it(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    place = TopicPartition("a.documents", 1)
    cluster.ends[place] = (0, 100)
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 3)
    cluster.offsets["a.fingerprint"][place] = 50
    assert said(cluster, settings) == []
    cluster.offsets["a.route"][place] = 51
    [line] = said(cluster, settings)
    assert "group a.route: its offset of a.documents[1] is 51, must be at most 50" in line


def test_readers_that_begin_apart_are_an_error(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    place = TopicPartition("a.documents", 0)
    cluster.ends[place] = (0, 100)
    cluster.offsets["a.fingerprint"][place] = 50
    [line] = said(cluster, settings)
    assert "group a.route: its offset of a.documents[0] is 0, must be 50" in line


def test_a_first_frame_whose_offsets_are_seen_before_it_is_a_beginning(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    place = TopicPartition("a.documents", 0)
    cluster.ends[place] = (0, 100)
    cluster.offsets["a.fingerprint"][place] = 50
    cluster.written[TopicPartition("a.fingerprints", 0)] = (0, 1)
    assert said(cluster, settings) == []


class TestLogsThatTakeOver:
    """While the log of the next generation takes over, a worker that restarts must be let in."""

    PLACE = TopicPartition("a.documents", 1)

    def taking_over(self, settings: Settings) -> FakeCluster:
        """Return a cluster in which the log is sealed, and nothing else has happened since."""
        cluster = FakeCluster(settings)
        words = load(overrides={"app": "a", "similarity.shingle": "word"})
        signing = Generation.fingerprinted(settings).signing
        assert signing is not None
        following = msgspec.structs.replace(Generation.fingerprinted(words), log=1)
        plan = Plan.of(settings).signed(signing).start_build(following)
        plan = plan.seal().hand_over()
        cluster.records["a.layout"][PLAN_KEY] = dump(plan)
        cluster.ends[self.PLACE] = (0, 100)
        cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 3)
        cluster.offsets["a.fingerprint"] = {
            TopicPartition("a.documents", 0): Offset(0, SEALED),
            self.PLACE: Offset(50, SEALED),
        }
        cluster.offsets["a.g1.fingerprint"] = dict.fromkeys(
            cluster.offsets["a.fingerprint"], Offset(0, WAITING)
        )
        return cluster

    def test_what_is_sealed_has_an_offset(self, settings: Settings) -> None:
        cluster = self.taking_over(settings)
        assert said(cluster, settings) == []
        cluster.offsets["a.fingerprint"][self.PLACE] = Offset(101, SEALED)
        [line] = said(cluster, settings)
        assert "group a.fingerprint: its offset of a.documents[1] is 101" in line

    def test_route_goes_on_with_the_new_log(self, settings: Settings) -> None:
        cluster = self.taking_over(settings)
        cluster.offsets["a.route"][self.PLACE] = 60
        [line] = said(cluster, settings)
        assert "group a.route: its offset of a.documents[1] is 60, must be at most 50" in line
        cluster.offsets["a.g1.fingerprint"][self.PLACE] = 60
        assert said(cluster, settings) == []

    def test_the_settings_may_be_those_for_after_it(self, settings: Settings) -> None:
        cluster = self.taking_over(settings)
        later = load(overrides={"app": "a", "similarity.shingle": "word"})
        assert said(cluster, later) == []
        other = load(overrides={"app": "a", "similarity.shingle_size": 6})
        assert [line for line in said(cluster, other) if "similarity.shingle_size" in line]


class TestLogsThatLostTheirEnd:
    @pytest.fixture
    def cluster(self, settings: Settings) -> FakeCluster:
        """Give one whose groups have read 12 of the documents, and 5 frames, in epoch 3."""
        cluster = FakeCluster(settings)
        topology = cluster.topology
        for stage in ("fingerprint", "index", "route"):
            for place in cluster.offsets[topology.group(stage)]:
                log = topology.log_of(place)
                at = {topology.documents: 12, topology.fingerprints: 5}.get(log.topic, 0)
                cluster.offsets[topology.group(stage)][place] = at
                cluster.epochs[place] = 3
                cluster.ends[log] = (0, 20)
        return cluster

    def test_nothing_is_wrong_with_one_that_has_what_was_read(
        self, cluster: FakeCluster, settings: Settings
    ) -> None:
        cluster.cut[TopicPartition("a.documents", 0)] = 12
        cluster.cut[TopicPartition("a.fingerprints", 0)] = 5
        assert inspect(cluster.as_cluster(), settings).truncated == []

    def test_every_group_that_is_past_the_cut_is_named(
        self, cluster: FakeCluster, settings: Settings
    ) -> None:
        place = TopicPartition("a.documents", 1)
        cluster.cut[place] = 9
        cluster.offsets["a.route"][place] = 8
        (line,) = said(cluster, settings)
        assert line.startswith("error group a.fingerprint: its offset of a.documents[1]")
        assert "12 in leader epoch 3, must be at most 9" in line
        cluster.offsets["a.route"][place] = 10
        assert len(said(cluster, settings)) == 2

    def test_a_cut_log_of_frames_concerns_the_seats(
        self, cluster: FakeCluster, settings: Settings
    ) -> None:
        cluster.cut[TopicPartition("a.fingerprints", 0)] = 3
        lines = said(cluster, settings)
        assert len(lines) == cluster.topology.layout.shards
        assert "error group a.index: its offset of a.shards[0]" in lines[0]
        assert "a.fingerprints[0] has lost its end" in lines[0]

    def test_what_can_t_be_accepted_is_refused(
        self, cluster: FakeCluster, settings: Settings
    ) -> None:
        before = {group: dict(offsets) for group, offsets in cluster.offsets.items()}
        cluster.cut[TopicPartition("a.documents", 0)] = 9
        cluster.ends[TopicPartition("a.documents", 0)] = (0, 11)
        found = inspect(cluster.as_cluster(), settings)
        with pytest.raises(ConfigurationError, match="it ends at 11 now"):
            accept_cut(cluster.as_cluster(), found)
        cluster.cut = {TopicPartition("a.matches-0", 0): 0}
        cluster.offsets["a.route"][TopicPartition("a.matches-0", 0)] = 4
        found = inspect(cluster.as_cluster(), settings)
        with pytest.raises(ConfigurationError, match="begin another application"):
            accept_cut(cluster.as_cluster(), found)
        cluster.offsets["a.route"][TopicPartition("a.matches-0", 0)] = 0
        assert cluster.offsets == before
