#!/bin/sh
# Installs Chromium for the browser tests where it is missing and may be installed; never fails, as those
# tests skip with a reason without it.
set -u

for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done

cannot() {
    echo "chromium: not installed ($1); the browser tests will be skipped" >&2
    exit 0
}

command -v apt-get >/dev/null 2>&1 || cannot "no apt-get here"
if [ "$(id -u)" = 0 ]; then
    sudo=
elif sudo -n true >/dev/null 2>&1; then
    sudo="sudo -n"
else
    cannot "it takes root: apt-get install chromium"
fi

echo "chromium: installing with apt-get"
$sudo apt-get update -qq </dev/null >/dev/null 2>&1
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
    </dev/null >/dev/null 2>&1
command -v chromium >/dev/null 2>&1 || cannot "apt-get install chromium failed"
