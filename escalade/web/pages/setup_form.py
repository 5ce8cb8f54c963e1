"""Forms made from the shape of the configuration, and those of contacts from what each transport says of itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from escalade.setting_up.drafts import DROP, RENEW, WAS, Draft
from escalade.transfer import model, shape
from escalade.transfer.kinds import Kind
from escalade.transfer.records import REQUIRED, Field, Fields
from escalade.transports import TRANSPORTS
from escalade.web.pages import setup_words
from escalade.web.pages.setup_parts import Ask, Item, Option, Several, id_of


def kinds() -> list[Option]:
    """The transports, by kind and label."""
    return [(transport.kind, transport.label) for transport in TRANSPORTS.values()]


@dataclass(slots=True)
class Form:
    """Makes the form of one thing. Faults are taken out of `faults` where they are shown; `focus` is where to go on."""

    section: str
    configuration: model.Configuration
    faults: dict[str, list[str]] = field(default_factory=dict)
    focus: str | None = None
    methods: Sequence[str] = ()
    summary: list[Option] = field(default_factory=list)

    def parts(self, fields: Fields, draft: Draft, old: Any, at: str = "") -> list[Any]:
        """The fields with what stands in them."""
        if "contact_methods" in fields:
            self.methods = [row["name"] for row in draft["contact_methods"] if row["name"]]
        made: list[Any] = []
        for name, one in fields.items():
            if one.kind.item is not None and one.kind.item.words is None:
                made.append(self.several(name, one, draft[name], old, at + name))
            elif fields is not shape.CONTACT or self.asked(name, draft, at + name):
                made.append(self.ask(name, one, draft, old, at + name))
        return made

    def asked(self, name: str, draft: Draft, path: str) -> bool:
        """Whether a contact of this kind has this field; what is there already is always shown."""
        transport = TRANSPORTS.get(draft["kind"])
        if name == "secret":
            return bool((transport and transport.takes_secret) or draft[name] or path in self.faults)
        return transport is not None or name in ("name", "kind") or path in self.faults

    def ask(self, name: str, one: Field, draft: Draft, old: Any, path: str) -> Ask:
        """One field."""
        label, hint = self.words(path)
        form, value, placeholder = one.kind.form, draft[name], ""
        if one.kind.item is not None:
            form = "days"
        if "pace" in draft:
            label, hint, placeholder = contact_words(name, draft, label, hint)
        box = boxed = None
        if form in ("secret", "key") and old is not None:
            hint, box, boxed = stored_words(form, path, old, hint, draft)
        if name == "address" and old is not None and hides_address(draft):
            hint = f"{hint} Leave it empty to keep the one that is stored.".strip()
        return Ask(
            path,
            label,
            form,
            value,
            hint,
            self.take(path, label),
            self.options(one, path, value),
            one.default is REQUIRED and form != "days" and not (name == "address" and old is not None),
            placeholder,
            box,
            bool(boxed),
            self.focused(path),
            name == "kind" and "pace" in draft,
        )

    def words(self, path: str) -> Option:
        """Label and hint."""
        return setup_words.label(re.sub(r"\[\d+\]", "", path), self.section)

    def several(self, name: str, one: Field, rows: list[Any], old: Any, path: str) -> Several:
        """A list; one of names has an empty line at its end, so that one more can be chosen."""
        label, hint = self.words(path)
        kind, word = one.kind.item, setup_words.ONE[name]
        if kind is None or kind.parts is None:
            items = [
                self.line(one, word, value, f"{path}[{index}]", index, len(rows))
                for index, value in enumerate([*rows, ""])
            ]
            return Several(path, label, hint, word, items, self.take(path, label), True, focus=self.focused(path))
        known = model.by_identity(getattr(old, one.attribute or name, None) or ()) if one.own else {}
        items = [
            self.item(kind.parts, word, row, known.get(row.get(WAS, "")), f"{path}[{index}]", index, len(rows))
            for index, row in enumerate(rows)
        ]
        offered = kinds() if kind.parts is shape.CONTACT else []
        return Several(path, label, hint, word, items, self.take(path, label), False, offered, self.focused(path))

    def item(self, parts: Fields, word: str, row: Draft, old: Any, path: str, index: int, count: int) -> Item:
        """One line of several fields."""
        name = f"{word.capitalize()} {row.get('name') or index + 1}"
        faults = self.take(path, name)
        made = self.parts(parts, row, old, path + ".")
        return Item(path, name, made, faults, row.get(WAS), index == 0, index == count - 1, old, row)

    def line(self, one: Field, word: str, value: str, path: str, index: int, count: int) -> Item:
        """One line of a list of names."""
        kind: Any = one.kind.item
        label = f"{word.capitalize()} {index + 1}"
        ask = Ask(
            path,
            label,
            kind.form,
            value,
            "",
            self.take(path, label),
            self.options(Field(kind, None), path, value),
            focus=self.focused(path),
        )
        return Item(path, label, [ask], (), None, index == 0, index >= count - 1, draft=value)

    def take(self, path: str, label: str) -> list[str]:
        """The faults of this place, which are shown here and listed at the top."""
        found = self.faults.pop(path, [])
        self.summary += [(id_of(path), f"{label}: {sentence}") for sentence in found]
        return found

    def focused(self, path: str) -> bool:
        """Whether this is the first field of where to go on."""
        if self.focus is None or not (path + ".").startswith((self.focus + ".", self.focus + "[")):
            return False
        self.focus = None
        return True

    def options(self, one: Field, path: str, value: Any) -> list[Option]:
        """What can be chosen. What is chosen already stays, also where it is no choice any more."""
        found = choices(one.kind, self)
        if found is None or one.kind.item is not None:
            return found or []
        if value and value not in [option for option, _ in found]:
            found = [*found, (value, value)]
        if one.default is REQUIRED or one.default is None:
            plain = ".".join(re.sub(r"\[\d+\]", "", path).split(".")[-2:])
            found = [("", setup_words.NONE.get(plain, "none chosen")), *found]
        return found


def choices(kind: Kind, form: Form) -> list[Option] | None:
    """The values of a kind with what they are called, None where anything can be typed."""
    there, people = form.configuration, [user for user in form.configuration.users if user.role != "viewer"]
    users = [(model.identity(user), user.name or user.email) for user in people]
    if kind.item is not None and kind.item.words is not None:
        return [(word, word) for word in kind.item.words()]
    if kind.words is not None:
        labels = dict(kinds()) if set(kind.words()) == set(TRANSPORTS) else {}
        return [(word, labels.get(word, word)) for word in kind.words()]
    if kind.form == "user":
        return users
    if kind.form == "policy":
        return [(policy.name, policy.name) for policy in there.policies]
    if kind.form == "method":
        return [(name, name) for name in form.methods]
    if kind.form == "target":
        found = [(f"schedule:{one.name}", f"schedule {one.name}") for one in there.schedules]
        found += [(f"user:{email}", name) for email, name in users]
        return found + [(f"channel:{one.name}", f"channel {one.name}") for one in there.channels]
    return None


def hides_address(draft: Draft) -> bool:
    """Whether the address of such a contact is a secret."""
    transport = TRANSPORTS.get(draft.get("kind", ""))
    return transport is not None and transport.secret_address


def contact_words(name: str, draft: Draft, label: str, hint: str) -> tuple[str, str, str]:
    """Label, hint and placeholder of a contact's field, as its transport says."""
    transport = TRANSPORTS.get(draft["kind"])
    if transport is None:
        return label, "Choose one, then press the button." if name == "kind" else hint, ""
    if name == "kind":
        return label, transport.about, ""
    if name == "address":
        return transport.address_is, hint, transport.example
    return (transport.secret_is or label, hint, "") if name == "secret" else (label, hint, "")


def stored_words(form: str, path: str, old: Any, hint: str, draft: Draft) -> tuple[str, Option | None, bool]:
    """What is said of a secret or a key that is stored: hint, checkbox, and whether that is ticked."""
    before = path.rpartition(".")[0]
    at = f"{before}." if before else ""
    if form == "key":
        box = (f"{at}{RENEW}", "Make a new key; the old one stops working at once")
        return f"It begins with {old.key.prefix}. Leave it empty to keep it.", box, bool(draft.get(RENEW))
    if old.secret is None:
        return hint, None, False
    box = (f"{at}{DROP}", "Remove the secret")
    return f"{hint} One is set. Leave it empty to keep it.".strip(), box, bool(draft.get(DROP))
