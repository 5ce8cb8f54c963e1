"""What a transport is given, what it answers, and the one exception it may raise."""

import ipaddress
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """One attempt inside a message: its id and the number of this try, from 1."""

    id: int
    try_: int


@dataclass(frozen=True, slots=True)
class IncidentBrief:
    """What a message says about one incident. `url` is our page, `link` the alert's own (http or https, or None)."""

    id: int
    title: str
    details: str
    status: str
    severity: str
    service: str | None
    dedup_key: str | None
    url: str
    link: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one contact method or channel, about one incident or several.

    `type` is page, notice or test; `event` is triggered, exhausted, drill, acknowledged, resolved, handoff,
    verification or test. `key` is the same for every try of the same set of attempts. `user` is an e-mail
    address, None for a channel; `recipient` is what to call them. `summary` says what happened where the
    event needs more than its name (who acknowledged, say). `ack_url` is None where there is nothing to
    acknowledge.
    """

    type: str
    event: str
    key: str
    address: str
    secret: str | None
    user: str | None
    recipient: str
    attempts: tuple[AttemptRef, ...]
    incidents: tuple[IncidentBrief, ...]
    ack_url: str | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class PushSender:
    """In whose name Web Push is sent: the private key (32 bytes as base64url), whom push services write to about it
    (https or mailto), and where our pages begin."""

    private: str = field(repr=False)
    contact: str
    home: str


@dataclass(frozen=True, slots=True)
class Network:
    """How a transport may use the network. Times are in seconds; `deadline` bounds the whole exchange.

    `allow_private` is True (every address), or the networks besides the public internet that may be reached.
    """

    connect_timeout: float = 3.0
    read_timeout: float = 5.0
    deadline: float = 10.0
    allow_private: bool | tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    proxy: str | None = None
    smtp_url: str | None = None
    mail_from: str | None = None
    push: PushSender | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The message was accepted. `request` and `answer` are short and redacted, for the try's record.

    `note` says what was changed on the way (a text that was shortened, say), empty where nothing was.
    """

    request: str = ""
    answer: str = ""
    note: str = ""


class DeliveryError(Exception):
    """The only exception a transport raises.

    `permanent`: trying again cannot help. `unknown`: the message may have been delivered all the same (the
    connection broke after the request was written). `retry_after`: seconds the receiver asked us to wait.
    `limited`: the receiver said "too many" (429), which uses up no try. The message never holds a secret.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        unknown: bool = False,
        retry_after: float | None = None,
        limited: bool = False,
        request: str = "",
        answer: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.permanent = permanent
        self.unknown = unknown
        self.retry_after = retry_after
        self.limited = limited
        self.request = request
        self.answer = answer
