"""What strangers send becomes storable text, or a refusal that says why."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escalade import clean
from escalade.errors import Refusal, Unreadable

ANY_TEXT = st.text(st.characters())


def storable(value: str) -> bool:
    return "\x00" not in value and value.encode().decode() == value


@given(ANY_TEXT)
def test_text_is_always_storable_and_says_whether_it_was_touched(value: str) -> None:
    cleaned, touched = clean.text(value)
    assert storable(cleaned) and touched == (cleaned != value)


def test_nul_and_lone_surrogates_become_the_replacement_character() -> None:
    assert clean.text("a\x00b\ud800c") == ("a\ufffdb\ufffdc", True)
    assert clean.text("whole \U0001f525") == ("whole \U0001f525", False)


def test_long_text_is_cut_with_a_visible_mark() -> None:
    assert clean.text("x" * 50, 20) == ("x" * 13 + "… (cut)", False)
    assert clean.text("x" * 20, 20) == ("x" * 20, False)
    assert len(clean.title_text("x" * 5_000)[0]) == clean.TITLE_LIMIT
    assert len(clean.details_text("x" * 50_000)[0]) == clean.DETAILS_LIMIT


@given(ANY_TEXT)
def test_a_title_is_one_line(value: str) -> None:
    title, _ = clean.title_text(value)
    assert storable(title) and len(title.splitlines()) <= 1 and "\t" not in title


def test_a_title_cannot_carry_a_mail_header() -> None:
    assert clean.title_text("Disk full\r\nBcc: eve@example.com\n") == ("Disk full Bcc: eve@example.com", False)


def test_details_keep_their_lines_and_tabs_but_no_other_control_characters() -> None:
    assert clean.details_text("a\r\nb\rc\n\td\x1b[31m") == ("a\nb\nc\n\td [31m", False)


def test_details_from_an_object_are_readable_and_marked_where_touched() -> None:
    assert clean.details_text({"host": "web1", "ü": [1, None]}) == (
        '{\n  "host": "web1",\n  "ü": [\n    1,\n    null\n  ]\n}',
        False,
    )
    assert clean.details_text({"a": "x\x00y"}) == ('{\n  "a": "x\ufffdy"\n}', True)


def test_k016_a_key_is_kept_verbatim() -> None:
    for key in ("web1-disk", " spaced\tand\nbroken ", "ключ", "k" * clean.KEY_LIMIT):
        assert clean.key_text(key) == (key, False)


@given(ANY_TEXT, ANY_TEXT)
def test_k016_keys_stay_equal_or_different_whatever_is_in_them(one: str, other: str) -> None:
    assert (clean.key_text(one)[0] == clean.key_text(other)[0]) == (one == other)


def test_k016_a_key_too_long_to_store_becomes_its_beginning_and_a_hash() -> None:
    long = "k" * (clean.KEY_LIMIT + 1)
    stored, touched = clean.key_text(long)
    assert stored.startswith("kkk") and len(stored) < 300 and not touched
    assert clean.key_text(long)[0] == stored != clean.key_text(long + "k")[0]
    # Fewer than 1,000 characters, yet more bytes than an index entry holds.
    assert len(clean.key_text("\U0001f525" * 900)[0].encode()) < 2_000
    assert clean.key_text("a\x00")[0] != clean.key_text("a\ud800")[0]
    assert clean.key_text("a\x00")[1]


@pytest.mark.parametrize(
    "value",
    ["https://example.com/d/abc?x=1#y", "http://127.0.0.1:9090/graph", "HTTPS://example.com", "http://[::1]/"],
)
def test_links_by_http_and_https_stay(value: str) -> None:
    assert clean.link(value) == value


@pytest.mark.parametrize(
    "value",
    [
        *["javascript:alert(1)", "JaVaScRiPt://example.com/%0aalert(1)", "java\nscript:alert(1)"],
        *["data:text/html,x", "ftp://example.com", "//example.com", "/relative", "example.com", "https://", ""],
        *["https://exa\nmple.com", "https://example.com/\x00", "https://example.com/\ud800", "https://[::1"],
        *["https://example.com/" + "x" * 2_000, None, 7, {"url": "https://example.com"}],
    ],
)
def test_anything_else_is_no_link(value: object) -> None:
    assert clean.link(value) is None


def test_a_link_loses_the_spaces_around_it_and_keeps_those_inside_encoded() -> None:
    assert clean.link(" https://example.com/a b\n") == "https://example.com/a%20b"


@given(st.one_of(ANY_TEXT, st.text("htps:/[]@?#%.\\ \x00\n\u2100", max_size=30).map("http://".__add__)))
def test_a_link_is_storable_http_or_none(value: str) -> None:
    found = clean.link(value)
    assert found is None or (storable(found) and found.lower().startswith(("http://", "https://")))


def test_json_values_read_as_words() -> None:
    values: list[object] = ["x", None, True, 7, 1.5, []]
    assert [clean.words(value) for value in values] == ["x", "", "true", "7", "1.5", "[]"]


def test_json_is_read_with_or_without_a_byte_order_mark_and_the_last_of_two_keys_wins() -> None:
    assert clean.json_body(b'\xef\xbb\xbf{"a": 1, "a": 2}') == {"a": 2}


def test_bytes_that_are_not_utf8_are_marked_where_they_are() -> None:
    value = clean.json_body(b'{"bad": "Gr\xf6\xdfe", "good": "fine"}')
    assert clean.text(value["bad"]) == ("Gr\ufffd\ufffde", True)
    assert clean.text(value["good"]) == ("fine", False)


def test_raw_line_ends_and_nul_inside_a_json_text_do_not_lose_it() -> None:
    assert clean.tree(clean.json_body(b'{"a\x00": ["one\ntwo", 1]}')) == ({"a\ufffd": ["one\ntwo", 1]}, True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b'{"a": ', "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[NaN]", "NaN is not a JSON number"),
        (b"[-Infinity]", "Infinity is not a JSON number"),
        (b"[1e400]", "too large"),
        (b"[-1e400]", "too large"),
        (b"[" + b"9" * 5_000 + b"]", "more than 100 characters"),
        (b"[0." + b"1" * 5_000 + b"]", "more than 100 characters"),
        (b"[" * 33 + b"]" * 33, "more than 32 levels"),
    ],
)
def test_json_that_cannot_be_stored_is_refused_and_the_sentence_says_why(body: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        clean.json_body(body)


def test_thirty_two_levels_are_fine_and_brackets_in_texts_do_not_count() -> None:
    clean.json_body(b"[" * 32 + b"]" * 32)
    assert clean.json_body(json.dumps({"a": '\\"' + "[{" * 100}).encode()) == {"a": '\\"' + "[{" * 100}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 20_000 + b"]" * 20_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b'["' + b'\\"' * 128_000,
        b'["' + b"\\" * 256_001,
        b'"' * 256_000,
        b"[" + b"9" * 256_000 + b"]",
    ],
)
def test_hostile_json_is_refused_and_hangs_nothing(body: bytes) -> None:
    # Hundredths of a second of this thread's own time; minutes where the scan goes back over the text.
    begun = time.thread_time()
    with pytest.raises(Unreadable):
        clean.json_body(body)
    assert time.thread_time() - begun < 10


@given(st.one_of(st.binary(), st.text('[]{}":,\\u0ed8 1e9NaI\x00').map(str.encode)))
def test_no_bytes_whatever_raise_anything_but_a_refusal(body: bytes) -> None:
    try:
        value = clean.json_body(body)
    except Refusal:
        return
    assert storable(json.dumps(clean.tree(value)[0], ensure_ascii=False, allow_nan=False))


def test_fields_are_cleaned_together() -> None:
    assert clean.fields(title="a\nb", details=None, dedup_key=" k ", group={"x": "\x00"}) == {
        "title": "a b",
        "details": "",
        "dedup_key": " k ",
        "group": {"x": "\ufffd"},
        "sanitized": True,
    }
