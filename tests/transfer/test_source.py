"""Text that is no plain YAML mapping is refused in one line; what YAML 1.1 would misread is read as meant."""

import pytest

from escalade.transfer import Faults, read

POLICY = "policies: [{name: %s}]"


def refusal(text: str) -> str:
    """The one line that refuses the text."""
    with pytest.raises(Faults) as caught:
        read(text)
    [line] = caught.value.faults
    return line


@pytest.mark.parametrize("text", ["", "# nothing", "~", "---"])
def test_an_empty_file_is_refused_so_that_prune_cannot_mean_everything(text: str) -> None:
    assert refusal(text) == "the file is empty"


@pytest.mark.parametrize("text", ["word", "[users]", "12"])
def test_a_file_is_a_mapping(text: str) -> None:
    assert refusal(text) == "the file must be a mapping: users, channels, ..."


def test_broken_yaml_says_where() -> None:
    broken = "users:\n  - {email: a@example.com\npolicies: []"
    assert refusal(broken).startswith("the file is not YAML: line 3, column ")


@pytest.mark.parametrize(
    ("text", "line"),
    [("users:\n\t- email: a@b.c", 2), ("users:\n  - email: a@b.c\n\t name: A", 3), ("users:\n  -\temail: a@b.c", 2)],
)
def test_a_tab_is_called_a_tab(text: str, line: int) -> None:
    said = refusal(text)
    assert said.startswith(f"the file is not YAML: line {line}, column ")
    assert said.endswith(": there is a tab, and YAML takes only spaces at the start of a line")


def test_a_large_file_is_refused_before_it_is_read() -> None:
    assert refusal("#" * (1024 * 1024 + 1)) == "the file is larger than 1 MiB"


def test_aliases_stand_for_what_they_name() -> None:
    document = read("policies: [{name: a, steps: &s [{targets: [], wait: 5m}]}, {name: b, steps: *s}]")
    first, second = document.configuration.policies
    assert document.faults == [] and first.steps == second.steps != ()


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["users: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"u{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert refusal("\n".join(lines)) == "the file holds more than 200,000 values, those repeated by aliases included"


def test_an_alias_of_itself_is_refused() -> None:
    assert refusal("users: &a [*a]") == "line 1: there is no anchor &a before this"


@pytest.mark.parametrize("depth", [25, 900, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    assert "nest" in refusal("users: " + "[" * depth + "]" * depth)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("users: !!python/object:os.system {}", "line 1: tags such as tag:yaml.org,2002:python/object:os.system"),
        ("a: 1\n--- \nb: 2", "the file holds more than one YAML document"),
        ("? [a]\n: b", "line 1: a key must be a plain word"),
        ("users: \ud800", "the file is not UTF-8"),
        ("users: \x01", "the file is not YAML: "),
    ],
)
def test_what_no_configuration_needs_is_refused(text: str, line: str) -> None:
    assert refusal(text).startswith(line)


def test_a_key_given_twice_is_a_fault_with_its_path() -> None:
    document = read("policies:\n  - name: a\n    repeat: 1\n    repeat: 2\npolicies: []")
    assert document.faults == ["policies[0].repeat: given twice", "policies: given twice"]


@pytest.mark.parametrize("name", ["on", "no", "12", "0x1F", "1e3", "2026-01-05", "12:30:00", "'null'", "yes"])
def test_a_name_that_yaml_takes_for_something_else_stays_a_name(name: str) -> None:
    document = read(POLICY % name)
    assert (document.faults, document.configuration.policies[0].name) == ([], name.strip("'"))


@pytest.mark.parametrize("null", ["~", "null", ""])
def test_a_field_that_says_nothing_is_left_out(null: str) -> None:
    assert read(POLICY % f"a, repeat: {null}").configuration.policies[0].repeat == 0
    assert read(POLICY % null).faults == ["policies[0].name: required"]


@pytest.mark.parametrize("at", ["17:30", '"17:30"', "'17:30'", "17:30:00"])
def test_a_time_needs_no_quotes(at: str) -> None:
    rotation = f"{{name: r, participants: [], unit: day, start_date: '2026-01-05', handoff_time: {at}}}"
    document = read(f"schedules: [{{name: s, rotations: [{rotation}]}}]")
    assert document.faults == []
    assert document.configuration.schedules[0].rotations[0].handoff_time.isoformat() == "17:30:00"


@pytest.mark.parametrize(
    "at", ["2026-02-01T00:00:00Z", "2026-02-01T01:00+01:00", "2026-02-01 01:00:00 +1", '"2026-02-01 00:00:00Z"']
)
def test_an_instant_may_be_written_in_every_way_that_yaml_has(at: str) -> None:
    change = f"{{at: {at}, participants: []}}"
    rotation = (
        "{name: r, participants: [], unit: day, start_date: 2026-01-05, handoff_time: 9:00, roster_changes: [%s]}"
    )
    document = read(f"schedules: [{{name: s, rotations: [{rotation % change}]}}]")
    assert document.faults == []
    assert document.configuration.schedules[0].rotations[0].roster_changes[0].at.isoformat() == (
        "2026-02-01T00:00:00+00:00"
    )
