"""Configurations without faults, of every shape, for hypothesis."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from escalade.inbound import PARSERS
from escalade.transports import TRANSPORTS

UNFIT = "".join(chr(code) for code in [*range(9), *range(11, 32), *range(127, 160)])
NAME = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029"), min_size=1, max_size=12
)
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=UNFIT), min_size=1, max_size=30)
LENGTH = st.integers(1, 366 * 24).map(lambda hours: f"{hours}h") | st.integers(1, 10**6).map(
    lambda number: f"{number}s"
)
INSTANT = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
SWITCH = st.sampled_from(["on", "off"])
PEOPLE = ["ann@example.com", "Bob@example.org", "eve@x.example"]
EMAIL = st.sampled_from(PEOPLE)
TIME = st.times().map(lambda at: at.isoformat("minutes"))


def record(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping; what is given as a pair may be left out."""
    optional = {name: one[0] for name, one in fields.items() if isinstance(one, tuple)}
    return st.fixed_dictionaries(
        {name: one for name, one in fields.items() if not isinstance(one, tuple)}, optional=optional
    )


def some(item: st.SearchStrategy[Any], by: str = "") -> st.SearchStrategy[list[Any]]:
    """A short list, its items told apart by a field."""
    return st.lists(item, max_size=3, unique_by=(lambda one: one[by]) if by else None)


def contact() -> st.SearchStrategy[dict[str, Any]]:
    """A contact method or channel of any kind."""
    addresses = {"email": "a@example.com", "log": "anything"}
    common = {"name": NAME, "updates": (SWITCH,), "pace": (st.sampled_from(["0s", "10s", "1h"]),)}
    return st.one_of(
        record(
            kind=st.just(kind),
            address=st.just(addresses.get(kind, f"https://{kind}.example/topic")),
            **common,
            **({"secret": (NAME,)} if transport.takes_secret else {}),
        )
        for kind, transport in TRANSPORTS.items()
        if transport.check_address(addresses.get(kind, f"https://{kind}.example/topic")) is None
    )


@st.composite
def users(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Everybody, none of them a viewer, with rules that use their own methods."""
    found = []
    for email in PEOPLE:
        one = draw(
            record(
                email=st.just(email),
                name=(NAME,),
                role=(st.sampled_from(["admin", "responder"]),),
                timezone=(st.sampled_from(["Europe/Berlin", "Asia/Kolkata"]),),
                contact_methods=(some(contact(), "name"),),
            )
        )
        if names := [method["name"] for method in one.get("contact_methods", [])]:
            rule = record(
                contact_method=st.sampled_from(names), after=LENGTH, urgency=(st.sampled_from(["high", "low"]),)
            )
            one["notification_rules"] = draw(st.lists(rule, max_size=3, unique_by=lambda rule: str(rule["after"])))
        found.append(one)
    return found


@st.composite
def overrides(draw: st.DrawFn) -> dict[str, Any]:
    """An override of any kind."""
    start, kind = draw(INSTANT), draw(st.sampled_from(["take", "replace", "remove"]))
    one = {
        "kind": kind,
        "user": draw(EMAIL),
        "start": start,
        "end": start + timedelta(seconds=draw(st.integers(1, 10**7))),
    }
    return one | ({"replaces": draw(EMAIL)} if kind == "replace" else {})


ROTATION = record(
    name=NAME,
    participants=some(EMAIL),
    unit=st.sampled_from(["hour", "day", "week"]),
    length=(st.integers(1, 10_000),),
    start_date=st.dates(datetime(1950, 1, 1).date(), datetime(2100, 1, 1).date()),
    handoff_time=TIME,
    restrictions=(some(record(days=some(st.sampled_from(["mon", "sun"])), to=TIME, **{"from": TIME})),),
    roster_changes=(some(record(at=INSTANT, participants=some(EMAIL))),),
)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration without faults."""
    channels = draw(some(contact(), "name"))
    rotations = some(ROTATION, "name")
    schedules = draw(
        some(
            record(
                name=NAME,
                timezone=(st.just("America/Sao_Paulo"),),
                rotations=(rotations,),
                overrides=(some(overrides()),),
            ),
            "name",
        )
    )
    targets = [f"user:{email}" for email in PEOPLE]
    targets += [f"channel:{one['name']}" for one in channels]
    targets += [f"schedule:{one['name']}" for one in schedules]
    target = st.sampled_from(targets)
    step = record(targets=some(target), wait=LENGTH)
    policies = draw(
        st.lists(
            record(name=NAME, repeat=(st.integers(0, 1000),), steps=(some(step),)),
            min_size=1,
            max_size=3,
            unique_by=lambda one: one["name"],
        )
    )
    key = st.uuids().map(str)
    integration = record(name=NAME, kind=st.sampled_from(sorted(PARSERS)), key=(key,), secret=(NAME,), verify=(SWITCH,))
    heartbeat = record(name=NAME, interval=LENGTH, grace=(LENGTH,), key=(key,), paused=(LINES,))
    service = record(
        name=NAME,
        policy=st.sampled_from([one["name"] for one in policies]),
        urgency=(st.sampled_from(["high", "low", "severity"]),),
        ack_timeout=(LENGTH,),
        auto_resolve=(LENGTH,),
        integrations=(some(integration, "name"),),
        heartbeats=(some(heartbeat, "name"),),
    )
    return draw(
        record(
            settings=(record(fallback=(some(target),), repage_exhausted_after=(LENGTH,)),),
            users=users(),
            channels=st.just(channels),
            schedules=st.just(schedules),
            policies=st.just(policies),
            services=(some(service, "name"),),
        )
    )
