"""What is old leaves in bounded batches, so that no claim ever waits for it."""

from datetime import timedelta

from escalade import attempts
from escalade.db import Begin

BATCH = 500


def archive(begin: Begin, days: int) -> int:
    """Move finished attempts of incidents resolved more than `days` ago out of the hot table; how many."""
    with begin() as tx:
        return attempts.archive(tx, days)


def prune(begin: Begin, days: int) -> int:
    """Forget what is more than `days` old: resolved incidents with their attempts, tries and timeline, messages that
    belong to no incident, and outages; how many incidents and messages, at most one batch of each."""
    with begin() as tx:
        before = tx.now - timedelta(days=days)
        ids = tx.values("incidents_to_prune", before=before, n=BATCH)
        if ids:
            for name in ("prune_tries", "prune_attempts", "prune_archive", "prune_events", "prune_incidents"):
                tx.run(name, ids=ids)
    with begin() as tx:
        loose = tx.run("prune_loose", before=before, n=BATCH)
        tx.run("prune_outages", before=before)
    return len(ids) + loose
