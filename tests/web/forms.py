"""A browser without JavaScript for tests of forms: it reads a page's form, fills it in, and presses a button."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

import requests

from tests.web.screens import OWN


@dataclass
class Button:
    """A submit button: what a person calls it, what it sends, and where to."""

    name: str
    sends: tuple[str, str] | None
    action: str | None


@dataclass
class Form:
    """A form: its fields as a browser would send them, the options of selects, and its buttons."""

    action: str
    method: str
    fields: dict[str, list[str]] = field(default_factory=dict)
    options: dict[str, list[str]] = field(default_factory=dict)
    ticks: dict[str, list[str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    buttons: list[Button] = field(default_factory=list)


class Forms(HTMLParser):
    """Collects the forms of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[Form] = []
        self.form: Form | None = None
        self.select = self.area = ""
        self.text: list[str] | None = None
        self.button: dict[str, str | None] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = dict(attrs)
        if tag == "form":
            self.form = Form(at.get("action") or "", at.get("method") or "get")
            self.found.append(self.form)
        if self.form is None:
            return
        name = at.get("name") or ""
        if tag == "input" and name:
            self.input(name, at)
        elif tag == "select":
            self.select = name
            self.form.fields.setdefault(name, [])
            self.form.options[name] = []
        elif tag == "option":
            self.form.options[self.select].append(at.get("value") or "")
            if "selected" in at or not self.form.fields[self.select]:
                self.form.fields[self.select] = [at.get("value") or ""]
        elif tag == "textarea":
            self.area, self.text = name, []
        elif tag == "button":
            self.button, self.text = at, []

    def input(self, name: str, at: dict[str, str | None]) -> None:
        assert self.form is not None
        value = at.get("value") or ""
        if at.get("type") in ("checkbox", "radio"):
            self.form.ticks.setdefault(name, []).append(value)
            if "checked" in at:
                self.form.fields.setdefault(name, []).append(value)
        else:
            self.form.fields.setdefault(name, []).append(value)

    def handle_data(self, data: str) -> None:
        if self.text is not None:
            self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if self.form is None:
            return
        if tag == "textarea" and self.text is not None:
            # A line end right after the tag is not a part of the text.
            self.form.fields[self.area], self.text = ["".join(self.text).removeprefix("\n")], None
        elif tag == "button" and self.button is not None and self.text is not None:
            at, words = self.button, " ".join("".join(self.text).split())
            sends = (at["name"] or "", at.get("value") or "") if at.get("name") else None
            if "hidden" not in at:
                self.form.buttons.append(Button(at.get("aria-label") or words, sends, at.get("formaction")))
            self.button = self.text = None
        elif tag == "form":
            self.form = None


@dataclass
class Browser:
    """Somebody at a page, over HTTP."""

    base: str
    cookie: str
    address: str = ""
    status: int = 0
    html: str = ""

    def go(self, path: str) -> "Browser":
        """Open a page."""
        return self.took(requests.get(urljoin(self.base, path), cookies={"escalade": self.cookie}, timeout=20))

    def took(self, answer: requests.Response) -> "Browser":
        """Look at an answer."""
        self.address, self.status, self.html = answer.url, answer.status_code, answer.text
        self.forms = Forms(self.html).found
        return self

    @property
    def form(self) -> Form:
        """The form of the page; the first one is the button that logs out."""
        return next(form for form in self.forms if form.action.startswith("/setup") and form.method == "post")

    def fill(self, **values: str) -> "Browser":
        """Type into fields of the page, choose, or tick; a dot in a name is written as __."""
        return self.put({name.replace("__", "."): value for name, value in values.items()})

    def put(self, values: dict[str, str | list[str]]) -> "Browser":
        """The same, with names as the form has them."""
        for name, value in values.items():
            wanted = value if isinstance(value, list) else [value]
            known = name in self.form.fields or name in self.form.ticks
            assert known, f"no field {name} among {[*self.form.fields, *self.form.ticks]}"
            if name in self.form.options:
                assert set(wanted) <= set(self.form.options[name]), f"{name}: no {wanted} in {self.form.options[name]}"
            if name in self.form.ticks:
                assert set(wanted) <= set(self.form.ticks[name]), f"{name}: no {wanted}"
            self.form.fields[name] = wanted
        return self

    def press(self, name: str) -> "Browser":
        """Press a button of the form."""
        names = [button.name for button in self.form.buttons]
        assert name in names, f"no button {name} among {names}"
        button = self.form.buttons[names.index(name)]
        sent = [(field, value) for field, values in self.form.fields.items() for value in values]
        sent += [button.sends] if button.sends else []
        target = urldefrag(urljoin(self.address, button.action or self.form.action))[0]
        return self.took(requests.post(target, data=sent, headers=OWN, cookies={"escalade": self.cookie}, timeout=20))
