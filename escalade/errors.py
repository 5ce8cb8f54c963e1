"""The refusals that reach a person. The web, the API and the command line each map these, and only these."""


class Refusal(Exception):
    """Something asked for cannot be done; the message is one clear sentence for the person who asked."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Invalid(Refusal):
    """The request itself can never work as it stands (422; 400 where it is not even readable)."""


class Unreadable(Invalid):
    """The bytes are no JSON, form or text that can be read (400)."""


class Unauthenticated(Refusal):
    """No valid login or token came with the request (401)."""


class Forbidden(Refusal):
    """The caller's role does not allow this (403)."""


class NotFound(Refusal):
    """No such thing (404)."""


class Conflict(Refusal):
    """The thing is in a state that does not allow this (409)."""


class TooMany(Refusal):
    """Over a rate limit (429); `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(Refusal):
    """The database is away or busy (503 with Retry-After)."""
