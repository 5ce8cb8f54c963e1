"""Reading the configuration: every setting, every fault at once, and what follows from the host."""

import ipaddress
from pathlib import Path

import pytest

from escalade.config import Config, ConfigFaults
from escalade.environment import SETTINGS

SECRETS = {
    "DATABASE_URL": "postgresql://me:s3same@db.example.com/pager",
    "ESCALADE_SECRET_KEY": "s3same-s3same-s3same",
    "ESCALADE_SECRET_KEY_OLD": "s3same-old",
    "ESCALADE_ADMIN_PASSWORD": "s3same-admin",
    "SMTP_URL": "smtp://me:s3same@mail.example.com:587?starttls=required",
    "ESCALADE_DEADMAN_URL": "https://hc.example.com/s3same",
}


def faults(**environ: str) -> list[str]:
    """The faults of this environment."""
    with pytest.raises(ConfigFaults) as caught:
        Config.read(environ)
    return caught.value.faults


def test_defaults() -> None:
    config = Config.read({})
    assert (config.host, config.port, config.base_url) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")
    assert (config.database_url, config.secret_key) == (None, None)
    assert config.data_dir == Path(__file__).parents[1] / ".data"
    assert (config.senders, config.db_pool, config.poll_seconds, config.listen) == (16, 5, None, "auto")
    assert (config.connect_timeout, config.read_timeout, config.send_deadline) == (3.0, 5.0, 10.0)
    assert (config.lease_seconds, config.max_tries, config.late_seconds) == (20.0, 8, 60.0)
    assert (config.hook_rate, config.max_open) == (100, 5000)
    assert (config.archive_after_days, config.keep_days) == (7, 365)
    assert (config.smtp_url, config.mail_from, config.log) == (None, "escalade@localhost", "text")
    assert (config.allow_private_addresses, config.trusted_proxies) == ((), 0)
    assert config.serve_faults() == []


def test_each_setting_is_a_field_and_its_default_parses() -> None:
    config = Config.read({})
    for setting in SETTINGS:
        assert hasattr(config, setting.field)
        if setting.default not in ("unset", "derived"):
            assert getattr(config, setting.field) == setting.default_value()


def test_empty_means_unset() -> None:
    assert Config.read({setting.name: "" for setting in SETTINGS}) == Config.read({})


def test_all_faults_at_once() -> None:
    found = faults(
        ESCALADE_SENDRS="3", ESCALADE_SENDERS="3", PORT="http", ESCALADE_LOG="xml", ESCALADE_LEASE_SECONDS="14.5"
    )
    assert found == [
        "ESCALADE_SENDRS: no such setting; did you mean ESCALADE_SENDERS?",
        "PORT: must be a whole number, not 'http'",
        "ESCALADE_SENDERS: must be at least 4, not '3'",
        "ESCALADE_LOG: must be text or json, not 'xml'",
        "ESCALADE_LEASE_SECONDS: must be at least ESCALADE_SEND_DEADLINE and 5, which is 15, not 14.5",
    ]


@pytest.mark.parametrize("password", ["abc", "x" * 1_001])
def test_the_first_password_is_a_fault_like_any_other(password: str) -> None:
    assert faults(PORT="x", ESCALADE_ADMIN_EMAIL="a@b.c", ESCALADE_ADMIN_PASSWORD=password) == [
        "PORT: must be a whole number, not 'x'",
        "ESCALADE_ADMIN_PASSWORD: must have from 8 to 1,000 characters",
    ]


def test_a_data_directory_that_is_named_counts_from_here() -> None:
    assert Config.read({"ESCALADE_DATA_DIR": "mine"}).data_dir == Path("mine")


def test_an_unknown_name_far_from_any_other() -> None:
    assert faults(ESCALADE_XYZZY="1") == ["ESCALADE_XYZZY: no such setting"]
    assert faults(ESCALADE_SENDRS_FILE="/x") == [
        "ESCALADE_SENDRS_FILE: no such setting; did you mean ESCALADE_SENDERS?"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "0"),
        ("PORT", "70000"),
        ("PORT", "1_000"),
        ("PORT", "８０００"),
        ("HOST", "http://x"),
        ("DATABASE_URL", "mysql://x/y"),
        ("DATABASE_URL", "postgres://u:p@h:notaport%zz/db"),
        ("ESCALADE_BASE_URL", "pager.example.com"),
        ("ESCALADE_BASE_URL", "https://pager.example.com/sub"),
        ("ESCALADE_BASE_URL", "https://me:pw@pager.example.com"),
        ("ESCALADE_BASE_URL", "https://pager..example.com"),
        ("ESCALADE_BASE_URL", f"https://{'x' * 64}.example.com"),
        ("ESCALADE_SECRET_KEY", "short"),
        ("ESCALADE_ADMIN_EMAIL", "alice"),
        ("ESCALADE_ADMIN_EMAIL", "alice@example.com, bob@example.com"),
        ("ESCALADE_ADMIN_EMAIL", "Alice <alice@example.com>"),
        ("ESCALADE_ADMIN_EMAIL", f"{'a' * 250}@example.com"),
        ("ESCALADE_POLL_SECONDS", "nan"),
        ("ESCALADE_POLL_SECONDS", "0"),
        ("ESCALADE_POLL_SECONDS", "5s"),
        ("ESCALADE_LISTEN", "yes"),
        ("ESCALADE_ALLOW_PRIVATE_ADDRESSES", "10.0.0.1/8"),
        ("ESCALADE_ALLOW_PRIVATE_ADDRESSES", "all"),
        ("ESCALADE_TRUSTED_PROXIES", "10.0.0.0/8"),
        ("SMTP_URL", "https://mail.example.com"),
        ("SMTP_URL", "smtp://"),
        ("SMTP_URL", "smtp://host:99999"),
        ("SMTP_URL", "smtp://mail.example.com?starttls=perhaps"),
        ("SMTP_URL", "smtp://mail.example.com?tls=on"),
        ("SMTP_URL", "smtp://m%C3%A9:pw@mail.example.com"),
        ("ESCALADE_MAIL_FROM", "pager@example.com\nBcc: x@y"),
        ("ESCALADE_DEADMAN_URL", "ftp://x/y"),
        ("ESCALADE_KEEP_DAYS", "3"),
        ("ESCALADE_ADMIN_PASSWORD", "correct horse"),
    ],
)
def test_bad_values(name: str, value: str) -> None:
    [fault] = faults(**{name: value})
    assert fault.startswith(f"{name}: ")
    assert "\n" not in fault


def test_secrets_show_nowhere() -> None:
    config = Config.read(SECRETS | {"ESCALADE_ADMIN_EMAIL": "alice@example.com"})
    assert "s3same" not in repr(config)
    assert "s3same" not in str(config)
    assert {setting.name for setting in SETTINGS if setting.secret} == set(SECRETS)
    for setting in SETTINGS:
        if setting.secret and setting.value.kind != "text":
            assert "s3same" not in faults(**{setting.name: "s3same \x00"})[0]


def test_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("0123456789abcdef \n\n")
    port = tmp_path / "port"
    port.write_text("9000\r\n")
    config = Config.read({"ESCALADE_SECRET_KEY_FILE": str(secret), "PORT_FILE": str(port)})
    assert config.secret_key == "0123456789abcdef "
    assert (config.port, config.host) == (9000, "0.0.0.0")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert faults(ESCALADE_SECRET_KEY_FILE=str(tmp_path / "none")) == [
        f"ESCALADE_SECRET_KEY_FILE: cannot read {tmp_path / 'none'}: No such file or directory"
    ]
    assert faults(PORT_FILE=str(tmp_path / "bytes")) == [f"PORT_FILE: cannot read {tmp_path / 'bytes'}: no UTF-8 text"]
    assert faults(PORT="1", PORT_FILE="/x") == ["PORT: set twice, also as PORT_FILE; keep one"]


def test_host_follows_port() -> None:
    assert Config.read({"PORT": "80"}).host == "0.0.0.0"
    assert Config.read({"PORT": "80", "HOST": "::1"}).host == "::1"


def test_base_url_on_loopback() -> None:
    assert Config.read({"PORT": "80", "HOST": "localhost"}).base_url == "http://127.0.0.1:80"
    assert Config.read({"HOST": "::1"}).base_url == "http://[::1]:8000"


def test_serving_is_refused_without_a_base_url() -> None:
    config = Config.read({"PORT": "80"})
    assert not config.base_url_known
    [fault] = config.serve_faults()
    assert fault.startswith("ESCALADE_BASE_URL: must be set when HOST is 0.0.0.0")
    assert Config.read({"PORT": "80", "ESCALADE_BASE_URL": "https://p.example.com/"}).serve_faults() == []


@pytest.mark.parametrize(
    ("environ", "base"),
    [
        ({"RENDER": "true", "RENDER_EXTERNAL_URL": "https://p.onrender.com"}, "https://p.onrender.com"),
        ({"RAILWAY_ENVIRONMENT": "x", "RAILWAY_PUBLIC_DOMAIN": "p.up.railway.app"}, "https://p.up.railway.app"),
        ({"FLY_APP_NAME": "p"}, "https://p.fly.dev"),
        (
            {"DYNO": "web.1", "HEROKU_APP_DEFAULT_DOMAIN_NAME": "p-1.herokuapp.com", "HEROKU_APP_NAME": "p"},
            "https://p-1.herokuapp.com",
        ),
        ({"DYNO": "web.1", "HEROKU_APP_NAME": "p"}, "https://p.herokuapp.com"),
    ],
)
def test_base_url_on_a_host(environ: dict[str, str], base: str) -> None:
    config = Config.read({"PORT": "80", **environ})
    assert (config.base_url, config.serve_faults(), config.trusted_proxies) == (base, [], 1)
    assert config.mail_from == f"escalade@{base.removeprefix('https://')}"
    own = Config.read({**environ, "ESCALADE_BASE_URL": "https://own.example.com", "ESCALADE_TRUSTED_PROXIES": "0"})
    assert (own.base_url, own.trusted_proxies) == ("https://own.example.com", 0)


def test_a_host_whose_variable_is_no_address() -> None:
    assert not Config.read({"PORT": "80", "RENDER_EXTERNAL_URL": "nonsense"}).base_url_known


@pytest.mark.parametrize(
    ("url", "used"),
    [
        ("postgres://u:p@ec2-1.amazonaws.com/d", "postgres://u:p@ec2-1.amazonaws.com/d?sslmode=require"),
        ("postgres://u@e.com/d?application_name=x", "postgres://u@e.com/d?application_name=x&sslmode=require"),
        ("postgres://u@e.com/d?sslmode=disable", "postgres://u@e.com/d?sslmode=disable"),
        ("postgres://u@dokku-postgres-pager:5432/d", "postgres://u@dokku-postgres-pager:5432/d"),
        ("postgres://u@10.0.0.4/d", "postgres://u@10.0.0.4/d"),
    ],
)
def test_tls_on_heroku(url: str, used: str) -> None:
    assert Config.read({"DATABASE_URL": url, "DYNO": "web.1"}).database_url == used
    assert Config.read({"DATABASE_URL": url}).database_url == url


def test_network() -> None:
    networks = (ipaddress.ip_network("127.0.0.1/32"), ipaddress.ip_network("fd00::/8"))
    config = Config.read({"ESCALADE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.1, fd00::/8", "ESCALADE_READ_TIMEOUT": "2.5"})
    network = config.network()
    assert (network.allow_private, network.read_timeout, network.deadline) == (networks, 2.5, 10.0)
    assert Config.read({"ESCALADE_ALLOW_PRIVATE_ADDRESSES": "ON"}).network().allow_private is True
    named = Config.read({"SMTP_URL": "smtp://localhost", "ESCALADE_MAIL_FROM": "Pager <p@example.com>"}).network()
    assert (named.smtp_url, named.mail_from) == ("smtp://localhost", "Pager <p@example.com>")


def test_the_document_lists_every_setting() -> None:
    lines = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    expected = [
        f"| `{setting.name}` | {setting.value.kind} | `{setting.default}` | {setting.help} |" for setting in SETTINGS
    ]
    assert rows == [row.replace("| `unset` |", "| unset |").replace("| `derived` |", "| derived |") for row in expected]
