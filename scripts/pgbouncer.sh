#!/bin/sh
# Installs PgBouncer for the tests that go through it, where it is missing and may be installed; never fails, as those
# tests skip with a reason without it.
set -u

command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ] && exit 0

cannot() {
    echo "pgbouncer: not installed ($1); the tests through it will be skipped" >&2
    exit 0
}

command -v apt-get >/dev/null 2>&1 || cannot "no apt-get here"
if [ "$(id -u)" = 0 ]; then
    sudo=
elif sudo -n true >/dev/null 2>&1; then
    sudo="sudo -n"
else
    cannot "it takes root: apt-get install pgbouncer"
fi

echo "pgbouncer: installing with apt-get"
$sudo apt-get update -qq </dev/null >/dev/null 2>&1
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer \
    </dev/null >/dev/null 2>&1
[ -x /usr/sbin/pgbouncer ] || cannot "apt-get install pgbouncer failed"
# The tests start one of their own; the one of the package is not wanted.
$sudo systemctl disable --now pgbouncer >/dev/null 2>&1 || $sudo service pgbouncer stop >/dev/null 2>&1
exit 0
