"""Incidents that nothing will ever move again: open, not exhausted, not snoozed, and with no step to come.

No transition leaves one behind, so each that is found says that something is wrong, once a round.
"""

import logging

from escalade.db import Begin

log = logging.getLogger("escalade.strays")

NAMED = 10


def report_strays(begin: Begin) -> int:
    """Say of every stray that it is one, in its timeline and in the log; how many had not been reported yet."""
    with begin() as tx:
        ids = tx.values("lock_strays", now=tx.now)
        tx.reread_clock()
        found = tx.values("report_strays", ids=ids, now=tx.now) if ids else []
    if found:
        numbers = ", ".join(str(incident_id) for incident_id in sorted(found)[:NAMED])
        numbers += f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        log.warning("open with no step to come and no end: incident %s (escalate or resolve)", numbers)
    return len(found)
