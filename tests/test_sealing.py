"""Secrets at rest: sealed under the key of the environment, readable under the old one, and never in a dump."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escalade import delivery, opening, overview, resealing, sealing, transfer
from escalade.checks.secrets import secrets
from escalade.config import Config
from escalade.db import Database, Limits
from tests import factories
from tests.commands import inside, refused, said
from tests.transfer.example import FULL

KEYS = ("a key of thirty-two letters or so", "")
OLD = "an older key of thirty-two letters"
CANARIES = ("whsec_YWJj", "tk_bob", "hooks.slack.com/services/T0/B0/x", "shared")
QUERY = """
    select m::text from contact_method m union all select c::text from channel c
    union all select n::text from integration n union all select a::text from audit a
"""


def keyed(url: str, *keys: str) -> Database:
    """A pool whose process has these keys."""
    return Database(url, size=2, limits=Limits(sealing_keys=keys))


def applied(url: str, *keys: str, file: str = FULL) -> list[str]:
    """The file, applied by a process with these keys; what changed."""
    db = keyed(url, *keys)
    try:
        with db.begin() as tx:
            return [change.line for change in transfer.apply(tx, file)]
    finally:
        db.close()


def exported(url: str, *keys: str) -> str:
    """The configuration with its secrets, as a process with these keys reads it."""
    db = keyed(url, *keys)
    try:
        with db.begin() as tx:
            return transfer.export(tx, secrets=True)
    finally:
        db.close()


def dumped(db: Database) -> str:
    """What a backup holds of it."""
    return "\n".join(row[0] for row in factories.run(db, QUERY))


@given(st.text(min_size=1), st.text(min_size=1))
def test_what_is_sealed_opens_under_its_key_alone(text: str, key: str) -> None:
    kept = sealing.seal([key], text)
    assert kept is not None and sealing.opened([key], kept) == text
    assert sealing.seal([key], text) != kept
    with pytest.raises(sealing.Unreadable):
        sealing.opened([key + "x"], kept)


@pytest.mark.parametrize("place", [0, 12, 20, -1])
def test_what_was_altered_does_not_open(place: int) -> None:
    raw = bytearray(sealing.urlsafe_b64decode((sealing.seal(KEYS, "secret") or "").removeprefix(sealing.PREFIX)))
    raw[place] ^= 1
    for kept in (sealing.PREFIX + sealing.urlsafe_b64encode(raw).decode(), sealing.PREFIX + "x", sealing.PREFIX):
        with pytest.raises(sealing.Unreadable):
            sealing.opened(KEYS, kept)


def test_without_a_key_of_the_environment_nothing_is_sealed_and_what_was_plain_stays_readable() -> None:
    for keys in ((), ("", ""), ("", OLD)):
        assert sealing.seal(keys, "secret") == "secret" and sealing.opened(keys, "secret") == "secret"
    assert sealing.opened(KEYS, "secret") == "secret" and sealing.opened(KEYS, None) is None
    assert Config.read({}).sealing_keys == ("", "")


def test_a_dump_holds_no_secret(clean_url: str, database: Database) -> None:
    applied(clean_url)
    assert all(canary in dumped(database) for canary in CANARIES)
    factories.run(database, "delete from service")
    for table in ("channel", "contact_method"):
        factories.run(database, f"delete from {table}")
    factories.run(database, "delete from app_user")
    applied(clean_url, *KEYS)
    found = dumped(database)
    assert [canary for canary in CANARIES if canary in found] == []
    assert all(canary in exported(clean_url, *KEYS) for canary in CANARIES)


def test_the_same_file_changes_nothing_whatever_it_was_sealed_under(clean_url: str, database: Database) -> None:
    applied(clean_url, OLD)
    assert applied(clean_url, KEYS[0], OLD) == []
    assert applied(clean_url, OLD, file=exported(clean_url, OLD).replace("kept", "kept")) == []


def test_what_cannot_be_read_is_kept_until_a_new_secret_comes(clean_url: str, database: Database) -> None:
    applied(clean_url, OLD)
    before = factories.run(database, "select secret from contact_method where name = 'hook'")
    db = keyed(clean_url, *KEYS)
    with db.begin() as tx:
        transfer.apply(tx, transfer.export(tx).replace("name: Alice,", "name: A,"))
    assert factories.run(database, "select secret from contact_method where name = 'hook'") == before
    assert any("secret changed" in line for line in applied(clean_url, *KEYS))
    assert exported(clean_url, *KEYS).count("whsec_YWJj") == 1
    db.close()


def test_a_message_leaves_with_the_secret_as_it_was_given() -> None:
    content: Any = delivery.Content(*[None] * len(delivery.Content._fields))._replace(
        address=sealing.seal(KEYS, "https://hooks.slack.com/services/x"), secret=sealing.seal(KEYS, "s")
    )
    opened = delivery.opened(content, KEYS)
    assert (opened.address, opened.secret) == ("https://hooks.slack.com/services/x", "s")
    with pytest.raises(sealing.Unreadable, match="ESCALADE_SECRET_KEY_OLD"):
        delivery.opened(content, [OLD])


def test_pages_show_a_sealed_address_masked_and_one_that_cannot_be_read_not_at_all() -> None:
    kept = sealing.seal(KEYS, "https://hooks.slack.com/services/T0/B0/x") or ""
    assert overview.shown_address("slack", kept, KEYS) == "https://hooks.slack.com/..."
    assert overview.shown_address("slack", kept, [OLD]) == "***"


def test_an_integration_proves_itself_by_its_sealed_secret(clean_url: str, database: Database) -> None:
    applied(clean_url, *KEYS)
    db = keyed(clean_url, *KEYS)
    digest = factories.run(db, "select key_hash from integration where name = 'prom'")[0][0]
    with db.read() as tx:
        assert opening.integration(tx, digest).secret == "shared"
    with database.read() as tx, pytest.raises(sealing.Unreadable):
        opening.integration(tx, digest)
    db.close()


def environment(url: str, key: str | None, old: str | None = None) -> dict[str, str]:
    named = {"ESCALADE_SECRET_KEY": key, "ESCALADE_SECRET_KEY_OLD": old}
    return {"DATABASE_URL": url} | {name: value for name, value in named.items() if value}


def levels(db: Database, config: Config) -> list[tuple[str, str]]:
    with db.read() as tx:
        return [(finding.level, finding.text) for finding in secrets(tx, config)]


def test_reencrypt_and_doctor(clean_url: str, database: Database) -> None:
    applied(clean_url)
    config = Config.read({"DATABASE_URL": clean_url})
    new, rotated = replace(config, secret_key=OLD), replace(config, secret_key=KEYS[0], secret_key_old=OLD)
    assert levels(database, config)[0][0] == "warning" and "none encrypted" in levels(database, config)[0][1]
    assert levels(database, new)[0][0] == "warning" and "reencrypt" in levels(database, new)[0][1]
    assert said(inside("reencrypt", **environment(clean_url, OLD))) == "4 encrypted anew, 0 as they should be\n"
    assert levels(database, new) == [("ok", "4, all encrypted")]
    assert said(inside("reencrypt", **environment(clean_url, OLD))) == "0 encrypted anew, 4 as they should be\n"
    assert levels(database, replace(config, secret_key=KEYS[0]))[0][0] == "fault"
    assert "ESCALADE_SECRET_KEY_OLD" in levels(database, replace(config, secret_key=KEYS[0]))[0][1]
    assert levels(database, rotated)[0][0] == "warning"
    said(inside("reencrypt", **environment(clean_url, KEYS[0], OLD)))
    assert levels(database, replace(config, secret_key=KEYS[0])) == [("ok", "4, all encrypted")]
    assert all(canary in exported(clean_url, *KEYS) for canary in CANARIES)
    [line] = refused(inside("reencrypt", **environment(clean_url, "some other key of thirty-two letters")))
    assert "left as they are" in line and "alice@example.com/hook" in line.lower()
    [line] = refused(inside("reencrypt", DATABASE_URL=clean_url))
    assert "ESCALADE_SECRET_KEY is not set" in line


def test_what_is_resealed_is_in_the_audit(clean_url: str, database: Database) -> None:
    applied(clean_url)
    db = keyed(clean_url, *KEYS)
    with db.begin() as tx:
        assert len(resealing.reseal(tx).outdated) == 4
    assert factories.run(db, "select count(*) from audit where action = 'secret encrypted anew'") == [(4,)]
    db.close()
