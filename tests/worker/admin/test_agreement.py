"""What workers agree on: compared by name, whatever version wrote it."""

import json
import re
from pathlib import Path

import pytest

from worker.admin.agreement import agreed, differences, dump, load, way_on
from worker.settings.loading import load as load_settings
from worker.settings.model import Settings


def facts(**overrides: str) -> dict[str, object]:
    settings: Settings = load_settings(
        overrides={name.replace("__", "."): value for name, value in overrides.items()}
    )
    return dict(agreed(settings, settings.topology(4)))


def test_the_same_settings_agree() -> None:
    assert differences(load(dump(facts())), facts()) == []


@pytest.mark.parametrize(
    ("setting", "value", "by_choice"),
    [
        ("similarity.threshold", "0.7", False),
        ("similarity.shingle", "word", False),
        ("similarity.casefold", "false", False),
        ("similarity.containment", "0.9", False),
        ("index.bucket_capacity", "16", False),
        ("index.absorb", "0.99", False),
        ("index.same_id", "replace", False),
        ("documents.id_field", "key", True),
        ("documents.time_field", "at", True),
        ("documents.time_format", "%Y%m%d", True),
        ("limits.record_bytes", "40000", True),
        ("topics.unique", "elsewhere", True),
    ],
)
def test_a_setting_that_decides_a_verdict_is_compared(
    setting: str, value: str, *, by_choice: bool
) -> None:
    found = {
        one.name: one for one in differences(facts(), facts(**{setting.replace(".", "__"): value}))
    }
    assert found[setting].here.strip('"') == value
    assert all(one.by_choice == by_choice for one in found.values())


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("index.shards", "9", "set index.shards to 2 again, or .*`neardup reindex --shards 9`"),
        ("index.window", "9d", "`neardup reindex --window 9d`"),
        ("index.bucket_capacity", "16", "`neardup reindex --bucket-capacity 16`"),
        ("similarity.casefold", "false", "to true again, or .*`neardup reindex --from-documents`"),
        ("similarity.seed", "a secret of our own", "put the similarity.seed back .* --app OTHER"),
        ("index.same_id", "replace", 'set index.same_id to "duplicate" again. .*--app OTHER'),
        ("documents.id_field", "key", "`neardup init --accept`"),
    ],
)
def test_the_way_on_is_one_that_mends_it(setting: str, value: str, said: str) -> None:
    [found] = differences(facts(), facts(**{setting.replace(".", "__"): value}))
    assert re.search(said, way_on(found, "a", begun=True))
    assert "init --accept" in way_on(found, "a", begun=False)


def test_another_version_is_no_setting() -> None:
    other = {**facts(), "the normaliser of this version of neardup": 99}
    [found] = differences(other, facts())
    assert way_on(found, "a", begun=True).startswith("run the version of neardup that its other")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("index.max_matches", "8"), ("worker.batch_records", "10"), ("index.cache_bytes", "8000000")],
)
def test_a_setting_that_decides_none_may_differ(setting: str, value: str) -> None:
    assert differences(facts(), facts(**{setting.replace(".", "__"): value})) == []


def test_a_record_of_an_earlier_version_means_that_containment_does_not_count() -> None:
    assert "similarity.containment" not in facts(similarity__containment="none")
    found = {one.name: one for one in differences(facts(), facts(similarity__containment="0.9"))}
    assert found["similarity.containment"].recorded == "none"


def test_a_record_of_an_earlier_version_says_what_a_repeated_id_meant_there() -> None:
    assert "index.same_id" not in facts()
    assert facts(index__same_id="duplicate") == facts()
    [found] = differences(facts(), facts(index__same_id="ignore"))
    assert (found.name, found.recorded, found.here) == ("index.same_id", '"duplicate"', '"ignore"')
    [found] = differences(facts(index__same_id="ignore"), facts())
    assert (found.recorded, found.here) == ('"ignore"', '"duplicate"')


def test_the_seed_is_compared_by_its_digest() -> None:
    one, other = facts(), facts(similarity__seed="a secret of our own")
    [found] = differences(one, other)
    assert found.name == "similarity.seed (its digest)"
    assert "a secret" not in json.dumps(other)


def test_lists_of_boilerplate_are_compared_by_the_digest_of_their_lines(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    one.write_text("12\tShare this\n7\tMore\n")
    same.write_text("more\nSHARE  this\n")
    other.write_text("Share this\n")
    with_list = facts(similarity__boilerplate=str(one))
    assert differences(with_list, facts(similarity__boilerplate=str(same))) == []
    [found] = differences(with_list, facts(similarity__boilerplate=str(other)))
    assert found.name == "similarity.boilerplate (the digest of its lines)"
    assert not found.by_choice
    [found] = differences(facts(), with_list)
    assert found.recorded == "none"
    [found] = differences(with_list, facts())
    assert found.here == "none"


def test_a_fact_that_only_one_version_knows_is_a_difference() -> None:
    later = {**facts(), "documents.language": "en"}
    [found] = differences(later, facts())
    assert (found.name, found.recorded, found.here) == ("documents.language", '"en"', "unknown")


def test_windows_of_the_same_length_agree() -> None:
    assert differences(facts(index__window="24h"), facts(index__window="1d")) == []


def test_a_window_is_compared_with_none_whatever_version_recorded_that() -> None:
    [found] = differences(facts(), facts(index__window="30d"))
    assert (found.name, found.recorded, found.here) == ("index.window", "none", '"30d"')
    assert not found.by_choice
    [back] = differences(facts(index__window="30d"), facts())
    assert (back.name, back.recorded, back.here) == ("index.window", '"30d"', "none")


def test_only_with_a_window_must_workers_agree_on_the_allowance() -> None:
    longer = {"index__future_allowance_seconds": "90"}
    stated = {"index__future_allowance_seconds": "60.0"}
    assert differences(facts(), facts(**longer)) == []
    assert differences(facts(index__window="30d"), facts(index__window="30d", **stated)) == []
    [found] = differences(facts(index__window="30d"), facts(index__window="30d", **longer))
    assert (found.name, found.recorded, found.here) == (
        "index.future_allowance_seconds",
        "60.0",
        "90.0",
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [(b"{}", "None"), (b"[]", "None"), (b'{"version": 2}', "2"), (b'{"version": 1}', "no facts")],
)
def test_what_another_wrote_is_refused(value: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load(value)
