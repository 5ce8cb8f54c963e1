"""Create, edit and delete what is configured. A form is a document of one thing; every button of it is a plain POST."""

import shlex
from typing import Any, cast
from zoneinfo import available_timezones

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for

from escalade import oncall
from escalade.errors import Conflict, NotFound, Refusal
from escalade.inbound.samples import sample
from escalade.setting_up import changing, drafts
from escalade.setting_up.changing import Gone, InUse, Saved, Stale
from escalade.setting_up.drafts import Draft
from escalade.setting_up.uses import Use, uses
from escalade.transfer import model, shape, stored
from escalade.transfer.faults import Faults
from escalade.transfer.records import Fields
from escalade.web.access import needs
from escalade.web.context import context
from escalade.web.pages.setup_form import Form
from escalade.web.pages.setup_words import SECTIONS

pages = Blueprint("setup_edit", __name__, url_prefix="/setup")

SETTINGS = "settings"
SAID = {"created": "Created.", "saved": "Saved.", "same": "Saved; nothing was different."}


def fields_of(section: str) -> Fields:
    """The fields of one thing of a section. Raises NotFound where there is no such section."""
    if section == SETTINGS:
        return shape.SETTINGS
    if section not in SECTIONS:
        raise NotFound("There is nothing at this address.")
    return changing.SECTIONS[section].fields


@pages.get("/<section>/new")
@needs("admin")
def new(section: str) -> Response:
    """An empty form."""
    draft = drafts.blank(fields_of(section))
    if request.args.get("kind") and "kind" in draft:
        draft["kind"] = request.args["kind"]
    return drawn(section, None, draft)


@pages.post("/<section>/new")
@needs("admin")
def create(section: str) -> Response:
    """Add one thing."""
    return posted(section, None)


@pages.get("/<section>/<int:thing_id>")
@needs("admin")
def edit(section: str, thing_id: int) -> Response:
    """The form of a thing. Raises NotFound."""
    fields_of(section)
    with context().db.read() as tx:
        thing = changing.find(stored.load(tx), section, thing_id)
    return shown(section, thing_id, thing)


@pages.post("/<section>/<int:thing_id>")
@needs("admin")
def change(section: str, thing_id: int) -> Response:
    """Change one thing."""
    return posted(section, thing_id)


@pages.get("/settings")
@needs("admin")
def settings() -> Response:
    """The form of what holds for the whole installation."""
    with context().db.read() as tx:
        found = stored.load(tx).settings or model.Settings()
    return shown(SETTINGS, None, found)


@pages.post("/settings")
@needs("admin")
def change_settings() -> Response:
    """Change them."""
    return posted(SETTINGS, None)


def shown(section: str, thing_id: int | None, thing: model.Thing | model.Settings) -> Response:
    """The form of what is stored. What it was made from is this very reading, not a later one."""
    fields = fields_of(section)
    return drawn(section, thing_id, drafts.of(fields, thing), made_from=changing.fingerprint(fields, thing))


def posted(section: str, thing_id: int | None) -> Response:
    """Save what was typed, or give the form another line and show it again."""
    fields = fields_of(section)
    draft = drafts.read(fields, {name: texts for name, texts in request.form.lists()})
    order = request.form.get("do", "save")
    if order != "save":
        made_from = request.form.get("made_from", "")
        return drawn(section, thing_id, draft, made_from=made_from, focus=drafts.rearranged(fields, draft, order))
    try:
        return saved(section, draft, request.form.get("made_from", ""), thing_id)
    except Faults as refusal:
        faults = changing.placed(refusal, section)
        return drawn(section, thing_id, draft, 422, faults, made_from=request.form.get("made_from", ""))
    except Gone:
        told = "Somebody else deleted this since you opened it. What you typed is below: saving makes it anew."
        return drawn(section, None, draft, 409, told=told)
    except Stale as refusal:
        return drawn(section, thing_id, draft, 409, told=refusal.message, stale=True)


def saved(section: str, draft: Draft, made_from: str, thing_id: int | None) -> Response:
    """Save, and go on to the thing; or first show the keys that are shown this once."""
    if section == SETTINGS:
        with context().db.begin() as tx:
            changes = changing.save_settings(tx, draft, made_from)
        return go_on(url_for(".settings", said="saved" if changes else "same"))
    with context().db.begin() as tx:
        done = changing.save(tx, section, thing_id, draft, made_from)
    if done.keys:
        return shown_once(section, done)
    said = "created" if thing_id is None else "saved" if done.changes else "same"
    return go_on(url_for(".edit", section=section, thing_id=done.id, said=said))


def go_on(address: str) -> Response:
    """To the page that shows what has become of it."""
    return cast(Response, redirect(address, 303))


def shown_once(section: str, done: Saved) -> Response:
    """The new keys, each in a command to try it with."""
    keys = [(made, curl(made.kind, made.key)) for made in done.keys]
    page = render_template("setup/keys.html", section=section, id=done.id, keys=keys, words=SECTIONS[section])
    return make_response(page)


def curl(kind: str, key: str, secret: bool = False) -> str:
    """A command that sends a test alert to an integration of this kind, or calls in for a heartbeat, which has none."""
    base = context().config.base_url
    if not kind:
        return f"curl -X POST {shlex.quote(f'{base}/beat/{key}')}"
    proof = "-H 'Authorization: Bearer SECRET' " if secret else ""
    body, to = shlex.quote(sample(kind)), shlex.quote(f"{base}/hooks/{key}")
    return f"curl -H 'Content-Type: application/json' {proof}-d {body} {to}"


def drawn(
    section: str,
    thing_id: int | None,
    draft: Draft,
    status: int = 200,
    faults: dict[str, list[str]] | None = None,
    *,
    made_from: str | None = None,
    focus: str | None = None,
    told: str = "",
    stale: bool = False,
) -> Response:
    """The form with what stands in it. `made_from` is None where the reader is told what is stored now."""
    fields = fields_of(section)
    with context().db.read() as tx:
        there = stored.load(tx)
    thing: Any = there.settings or model.Settings() if section == SETTINGS else None
    if thing_id is not None:
        thing = next((one for one in getattr(there, section) if one.id == thing_id), None)
    form = Form(section, there, dict(faults or {}), focus)
    parts = form.parts(fields, draft, thing)
    page = render_template(
        "setup/form.html",
        section=section,
        words=SECTIONS.get(section),
        thing_id=thing_id,
        parts=parts,
        summary=[*(("top", text) for texts in form.faults.values() for text in texts), *form.summary],
        made_from=changing.fingerprint(fields, thing) if made_from is None and thing is not None else made_from or "",
        told=told,
        now_stored=changing.as_yaml(section, thing) if stale and thing is not None else "",
        name=model.identity(thing) if thing_id is not None and thing is not None else "",
        curl=curl,
        said=SAID.get(request.args.get("said", "")),
        zones=sorted(filter(oncall.names_zone, available_timezones())),
    )
    return make_response(page, status)


@pages.get("/<section>/<int:thing_id>/delete")
@needs("admin")
def ask_delete(section: str, thing_id: int) -> Response:
    """What would break, or the button. Raises NotFound."""
    fields_of(section)
    with context().db.read() as tx:
        there = stored.load(tx)
    thing = changing.find(there, section, thing_id)
    return deleting(section, thing_id, model.identity(thing), uses(there, section, thing))


@pages.post("/<section>/<int:thing_id>/delete")
@needs("admin")
def delete(section: str, thing_id: int) -> Response:
    """Delete a thing. Raises NotFound where somebody else was first."""
    fields_of(section)
    try:
        with context().db.begin() as tx:
            changing.remove(tx, section, thing_id)
    except InUse as refusal:
        return deleting(section, thing_id, "", refusal.uses, refusal)
    except Conflict as refusal:
        return deleting(section, thing_id, "", [], refusal)
    return go_on(url_for("setup_page.show", said="deleted"))


def deleting(section: str, thing_id: int, name: str, found: list[Use], refusal: Refusal | None = None) -> Response:
    """The page that asks before it deletes."""
    page = render_template(
        "setup/delete.html",
        section=section,
        words=SECTIONS[section],
        thing_id=thing_id,
        name=name,
        uses=[(use, address(use)) for use in found],
        sections=SECTIONS,
        refusal=refusal,
    )
    return make_response(page, 409 if refusal else 200)


def address(use: Use) -> str:
    """Where the use can be taken out."""
    if use.section == SETTINGS:
        return url_for(".settings")
    return url_for(".edit", section=use.section, thing_id=use.id)
