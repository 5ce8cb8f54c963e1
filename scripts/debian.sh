#!/bin/sh
# Installs a Debian package that tests use, where none of its programs is there and it may be installed:
# debian.sh PACKAGE PROGRAM... Never fails: tests that need it skip with a reason without it.
set -u

package=$1
shift
PATH=$PATH:/usr/sbin
for name in "$@"; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done

cannot() {
    echo "$package: not installed ($1); the tests that need it will be skipped" >&2
    exit 0
}

command -v apt-get >/dev/null 2>&1 || cannot "no apt-get here"
if [ "$(id -u)" = 0 ]; then
    sudo=
elif sudo -n true >/dev/null 2>&1; then
    sudo="sudo -n"
else
    cannot "it takes root: apt-get install $package"
fi

echo "$package: installing with apt-get"
$sudo apt-get update -qq </dev/null >/dev/null 2>&1
# A service that the package brings is not started: tests start their own.
$sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$package" \
    </dev/null >/dev/null 2>&1
command -v "$1" >/dev/null 2>&1 || cannot "apt-get install $package failed"
