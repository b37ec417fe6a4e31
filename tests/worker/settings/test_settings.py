"""Every wrong setting is one line: which, what it got, what it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsh import SWITCHES
from worker.settings.errors import ConfigurationError
from worker.settings.judging import MOST_BANDS
from worker.settings.loading import load
from worker.settings.model import Settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARDUP_CONFIG", raising=False)


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "neardup.toml"
    path.write_text(text)
    return path


def test_command_line_over_environment_over_file_over_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = toml(tmp_path, 'app = "file"\n[index]\nshards = 2\nbucket_capacity = 5\nabsorb = 0.99\n')
    monkeypatch.setenv("NEARDUP_INDEX__SHARDS", "3")
    monkeypatch.setenv("NEARDUP_INDEX__BUCKET_CAPACITY", "6")
    settings = load(path, {"index.shards": 7, "app": None})
    assert settings.index.shards == 7
    assert settings.index.bucket_capacity == 6
    assert settings.index.absorb == 0.99
    assert settings.index.max_matches == 64
    assert settings.app == "file"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[similarity]\nthreshold = 1.5",
            "similarity.threshold: got 1.5, must be less than or equal to 1",
        ),
        ("[similarity]\nthreshold = 0", "similarity.threshold: got 0, must be greater than 0"),
        ("[similarity]\nthreshold = 'x'", "similarity.threshold: got 'x', must be a valid number"),
        (
            "[similarity]\ncontainment = 1.5",
            r"similarity.containment: got 1\.5, must be less than or",
        ),
        (
            "[similarity]\ncontainment = 'x'",
            "similarity.containment: got 'x', must be a valid numb",
        ),
        ("[similarity]\ncontainment_ratio = 0.5", r"containment_ratio: got 0\.5, must be greater"),
        ("[similarity]\nbands = 4", "similarity.bands and similarity.rows: set both or neither"),
        ("[similarity]\nbands = 40\nrows = 40", r"bands \* rows: got 40 \* 40, takes at most"),
        ("[index]\nshards = 30", "index.shards: got 30, must be at most the number of bands, 18"),
        ("[index]\nabsorb = 0.5", "index.absorb: got 0.5, must be between"),
        (
            "[index]\nmax_matches = 866",
            "index.max_matches: got 866, must be at most 865 with limits.id_bytes 1024",
        ),
        (
            "[index]\nmax_matches = 863\n[similarity]\ncontainment = 0.9",
            "index.max_matches: got 863, must be at most 862 with limits.id_bytes 1024",
        ),
        (
            "[index]\nstandby = 'some'",
            "index.standby: got 'some', must be none, all, or comma-separated",
        ),
        ("[index]\nstandby = '1,4'", "index.standby: got '1,4', must be .* numbers below 2"),
        (
            "[index]\nwindow = '30 days'",
            "index.window: got '30 days', must be none, or a length of at least 1s, such as 30d",
        ),
        ("[index]\nwindow = '0s'", "index.window: got '0s', must be none, or a length of at least"),
        (
            "[serve]\ngroups_window = 'month'",
            "serve.groups_window: got 'month', must be auto, none, or a length of at least 1s",
        ),
        ("[index]\nwindow = 30", "index.window: got 30, must be a valid string"),
        ("[index]\nsnapshots.keep = 0", "index.snapshots.keep: got 0, must be"),
        (
            "[index.snapshots]\ntrim_log = true",
            "index.snapshots.trim_log: needs index.snapshots.url",
        ),
        ("[index.snapshots]\nurls = 'x'", "no such setting; did you mean index.snapshots.url"),
        (
            '[kafka.consumer]\n"isolation.level" = "x"',
            "kafka.consumer: isolation.level can't be overridden",
        ),
        (
            '[kafka.producer]\n"transactional.id" = "x"',
            "kafka.producer: transactional.id can't be overridden",
        ),
        ("[index]\nshard = 3", "index.shard: no such setting; did you mean index.shards?"),
        ("[indx]\nshards = 3", "indx: no such setting; did you mean index?"),
        ("[worker]\nstages = ['indx']", "worker.stages: got 'indx', must be one of .*mean index"),
        ("[worker]\ninstance = 'a b'", "worker.instance: got 'a b', must match pattern"),
        ("[index]\nshards = 'a'", "index.shards: got 'a', must be a valid integer$"),
        ("[worker]\nstate_dir = 3", "worker.state_dir: got 3, must be a path$"),
        ("x = [", "neardup.toml: invalid TOML: "),
    ],
)
def test_wrong_settings(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(ConfigurationError, match=line) as caught:
        load(toml(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_short_ids_leave_room_for_more_matches(tmp_path: Path) -> None:
    path = toml(tmp_path, "[index]\nmax_matches = 1024\n[limits]\nid_bytes = 256")
    assert load(path).index.max_matches == 1_024


def test_an_unknown_environment_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_INDEX__SHARD", "3")
    with pytest.raises(ConfigurationError, match="did you mean NEARDUP_INDEX__SHARDS"):
        load()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml is not a file"):
        load(tmp_path / "none.toml")


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        '[similarity]\nseed = "geheim-geheim-geheim"\n'
        '[kafka.common]\n"sasl.password" = "geheim"\n"sasl.username" = "me"\n'
        '[index.snapshots]\nurl = "s3://b"\noptions = {key = "geheim", more = {x = "geheim"}}\n',
    )
    settings = load(path)
    shown = settings.redacted()
    assert "geheim" not in str(shown)
    assert "geheim" not in repr(settings)
    assert shown["kafka"]["common"]["sasl.username"] == "me"
    assert settings.parameters().seed == b"geheim-geheim-geheim"


@pytest.mark.parametrize(
    ("standby", "shards"), [("none", ()), ("all", (0, 1, 2, 3)), ("2", (2,)), ("0,3", (0, 3))]
)
def test_the_shards_to_keep_warm(standby: str, shards: tuple[int, ...]) -> None:
    settings = load(overrides={"index.shards": 4, "index.standby": standby})
    assert settings.index.standby_shards == shards


@pytest.mark.parametrize(
    ("given", "window", "window_ms"),
    [
        ("none", "none", None),
        ("1s", "1s", 1_000),
        ("48h", "2d", 172_800_000),
        ("1d12h", "1d12h", 129_600_000),
    ],
)
def test_a_window_is_kept_in_its_shortest_form(
    given: str, window: str, window_ms: int | None
) -> None:
    index = load(overrides={"index.window": given}).index
    assert (index.window, index.window_ms) == (window, window_ms)


@pytest.mark.parametrize(
    ("name", "value", "must"),
    [
        ("text_fields", "text,a[", "got 'a[', must be a name, or a path such as a.b"),
        ("id_field", "a[x]", "got 'a[x]', must be a name, or a path such as a.b"),
        ("id_field", "ids[]", "got 'ids[]', must lead to one value: a[0] does"),
        ("time_field", "a[].at", "got 'a[].at', must lead to one value: a[0] does"),
        ("time_format", "iso", "got 'iso', must be auto, seconds, milliseconds, microseconds,"),
        ("time_format", "%Y-%M-%d", "got '%Y-%M-%d', must be auto, seconds, milliseconds,"),
    ],
)
def test_a_field_or_format_that_leads_nowhere_is_refused(name: str, value: str, must: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(overrides={f"documents.{name}": value})
    assert str(caught.value).startswith(f"documents.{name}: {must}")


@pytest.mark.parametrize(
    ("given", "window_ms", "kept_ms"),
    [
        ("auto", None, 2_592_000_000),
        ("auto", 5_000, 5_000),
        ("none", 5_000, None),
        ("48h", 5_000, 172_800_000),
    ],
)
def test_members_of_groups_are_kept_for_the_window_or_as_it_is_set(
    given: str, window_ms: int | None, kept_ms: int | None
) -> None:
    serve = load(overrides={"serve.groups_window": given}).serve
    assert serve.groups_window_ms(window_ms) == kept_ms


def test_without_a_setting_there_is_no_window() -> None:
    assert load().index.window_ms is None


def test_bands_that_are_chosen_are_as_many_as_a_store_can_tell_apart() -> None:
    settings = load(overrides={"similarity.slots": 4_096, "similarity.threshold": 0.2})
    assert settings.parameters().bands <= MOST_BANDS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (128, 18, 7)),
        ({"threshold": 0.7}, (256, 42, 6)),
        ({"threshold": 0.7, "slots": 128}, (128, 25, 5)),
        ({"threshold": 0.7, "bands": 18, "rows": 7}, (256, 18, 7)),
        ({"bands": 9, "rows": 13}, (128, 9, 13)),
        ({"containment": "none"}, (128, 18, 7)),
        ({"containment": 0.9}, (256, 64, 4)),
        ({"containment": 0.9, "containment_ratio": 1}, (128, 18, 7)),
        ({"containment": 0.9, "bands": 18, "rows": 7}, (256, 18, 7)),
    ],
)
def test_slots_bands_and_rows_that_are_not_given_follow(
    given: dict[str, float | str], expected: tuple[int, int, int]
) -> None:
    chosen = load(overrides={f"similarity.{name}": value for name, value in given.items()})
    parameters = chosen.parameters()
    assert (parameters.slots, parameters.bands, parameters.rows) == expected


def test_a_later_file_may_switch_containment_off(tmp_path: Path) -> None:
    one = toml(tmp_path, "[similarity]\ncontainment = 0.9")
    other = tmp_path / "other.toml"
    other.write_text("[similarity]\ncontainment = 'none'")
    assert load(one).rules().containment == 0.9
    assert load([one, other]).rules().containment is None


def test_a_name_may_have_more_than_one_section() -> None:
    settings = load(overrides={"index.snapshots.url": "/x", "index.snapshots.keep": 5})
    assert (settings.index.snapshots.url, settings.index.snapshots.keep) == ("/x", 5)
    assert settings.index.shards == 2


def test_the_seed_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "seed").write_text("from a file of ours\n")
    settings = load(toml(tmp_path, f'[similarity]\nseed_file = "{tmp_path / "seed"}"'))
    assert settings.parameters().seed == b"from a file of ours"
    with pytest.raises(ConfigurationError, match=r"similarity\.seed_file"):
        load(toml(tmp_path, f'[similarity]\nseed_file = "{tmp_path / "none"}"'))


def switches(**similarity: object) -> dict[str, bool]:
    parameters = Settings.model_validate({"similarity": similarity}).parameters()
    return {name: getattr(parameters, name) for name in SWITCHES}


def test_without_a_preset_nothing_is_folded_that_a_reader_tells_apart() -> None:
    on = {"nfkc", "casefold", "collapse_whitespace", "drop_invisible", "drop_overlays"}
    assert switches() == {name: name in on for name in SWITCHES}


def test_a_preset_turns_switches_on_and_a_setting_overrides_it() -> None:
    assert switches(preset="comments") == {
        name: name not in {"fold_turkish_i", "strip_html", "reduce_urls"} for name in SWITCHES
    }
    assert switches(preset="news") == switches(strip_html=True, reduce_urls=True)
    assert switches(preset="code", nfkc=True) == switches(casefold=False, drop_overlays=False)
    assert switches(preset="comments", fold_digits=False)["fold_digits"] is False
    assert switches(fold_digits=True)["fold_digits"] is True


def test_words_stay_apart_with_a_preset() -> None:
    assert switches(preset="comments", shingle="word")["join_letters"] is False
    with pytest.raises(ValueError, match="join_letters"):
        switches(join_letters=True, shingle="word")
