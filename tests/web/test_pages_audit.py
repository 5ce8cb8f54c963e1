"""The page of the audit."""

import pytest

from escalade import api_tokens, audit
from tests.test_audit import rows
from tests.web.screens import Screens


def test_admins_read_it_page_by_page(screens: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PAGE", 2)
    with audit.acting("<script>alert(1)</script>", "192.0.2.9"), screens.db.begin() as tx:
        for number in range(3):
            audit.record(tx, "user changed", f"u{number}", {"role": "a"}, {"role": "</b><img src=x onerror=alert(1)>"})
    admin = screens.client("root", "admin")
    page = admin.get("/setup/audit").text
    assert "u2" in page and "u1" in page and "u0" not in page and "from 192.0.2.9" in page
    assert "<script>alert" not in page and "<img" not in page
    older = admin.get(f"/setup/audit?before={older_than(page)}").text
    assert "u0" in older and "u1" not in older
    assert admin.get("/setup/audit?before=x").status_code == 200
    assert admin.get("/setup/audit?before=99999999999999999999").status_code == 200
    assert screens.client("bob", "responder").get("/setup/audit").status_code == 403


def older_than(page: str) -> str:
    return page.split("before=")[1].split('"')[0]


def test_a_request_leaves_no_name_behind_in_its_thread(screens: Screens) -> None:
    screens.client("root", "admin").post("/setup/tokens", name="ci", role="viewer", days="")
    with screens.db.begin() as tx:
        api_tokens.revoke(tx, "ci")
    assert [row[0] for row in rows(screens.db)] == ["root@example.com", "escalade"]
