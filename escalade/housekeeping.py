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
    """Forget the incidents resolved more than `days` ago, with their attempts, tries and timeline; how many
    incidents, at most one batch."""
    with begin() as tx:
        ids = tx.values("incidents_to_prune", before=tx.now - timedelta(days=days), n=BATCH)
        if ids:
            for name in ("prune_tries", "prune_attempts", "prune_archive", "prune_events", "prune_incidents"):
                tx.run(name, ids=ids)
        return len(ids)
