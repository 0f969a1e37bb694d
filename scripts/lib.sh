# shellcheck shell=bash
# Shared by the scripts beside it: where things are, how to speak, how to fail. Source it.
set -euo pipefail

# shellcheck disable=SC2034  # used by the scripts that source this file
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${BENCHTRAIL_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/benchtrail}
export BENCHTRAIL_CACHE=$CACHE

# shellcheck source=scripts/pins/versions
. "$ROOT/scripts/pins/versions"

# Rust where rustup puts it, when the shell does not know it.
command -v cargo >/dev/null || [ ! -x "$HOME/.cargo/bin/cargo" ] || PATH=$HOME/.cargo/bin:$PATH
# What `setup` found or installed (a private Rust, the toolchain to use).
# shellcheck disable=SC1091
[ ! -f "$CACHE/env" ] || . "$CACHE/env"
export PATH=$CACHE/tools/bin:$PATH

if [ -t 1 ]; then BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' YELLOW=$'\e[33m' PLAIN=$'\e[0m'
else BOLD='' DIM='' RED='' YELLOW='' PLAIN=''; fi

say() { printf "%s\n" "$*"; }
step() { printf '%s==> %s%s\n' "$BOLD" "$*" "$PLAIN"; }
warn() { printf '%s!   %s%s\n' "$YELLOW" "$*" "$PLAIN" >&2; }

# die WHAT [CURE]: says what is missing and the command that cures it.
die() {
  printf '%sxx  %s%s\n' "$RED" "$1" "$PLAIN" >&2
  [ $# -lt 2 ] || printf '    To cure it:  %s%s%s\n' "$BOLD" "$2" "$PLAIN" >&2
  exit 1
}

# at_least MIN VERSION: is VERSION the same as MIN or newer?
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# logged NAME COMMAND…: runs COMMAND with its output in a log file, shows that time passes, and on failure shows the
# end of the log. Returns the command's status.
logged() {
  local name=$1 log pid status=0 began=$SECONDS
  shift
  mkdir -p "$CACHE/log"
  log=$CACHE/log/${name//[^A-Za-z0-9.-]/-}.log
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  # shellcheck disable=SC2064  # the id is known now
  trap "kill $pid 2>/dev/null || true; exit 130" INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    if [ -t 1 ]; then
      printf '\r\e[K    %s  %ss  %s%.70s%s' "$name" "$((SECONDS - began))" "$DIM" "$(tail -n 1 "$log" | tr -d '\r\033')" "$PLAIN"
    elif [ $(((SECONDS - began) % 60)) = 59 ]; then
      printf '    %s: %s s so far: %.80s\n' "$name" "$((SECONDS - began))" "$(tail -n 1 "$log" | tr -d '\r\033')"
    fi
    sleep 1 &
    wait -n "$pid" $! 2>/dev/null || true
  done
  wait "$pid" || status=$?
  trap - INT TERM
  [ ! -t 1 ] || printf '\r\e[K'
  if [ "$status" = 0 ]; then
    printf '    %s: done in %s s\n' "$name" "$((SECONDS - began))"
  else
    printf '%sxx  %s failed (status %s). The end of %s:%s\n' "$RED" "$name" "$status" "$log" "$PLAIN" >&2
    tail -n 15 "$log" | sed 's/^/    | /' >&2
  fi
  return "$status"
}

# ask_for_root: has sudo ask for its password now, before anything is painted over the question.
ask_for_root() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || sudo -v; }
# run_as_root COMMAND…: directly as root, else through sudo.
run_as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# postgres_made_by: the major version of PostgreSQL that made the private database, or nothing where there is none yet.
postgres_made_by() { cat "${VAR:-$ROOT/var}/postgres/data/PG_VERSION" 2>/dev/null || true; }

# postgres_bin: the folder of PostgreSQL's programs to use, or nothing: of the version that made the private database (no
# other can open it), else of the newest that is new enough.
postgres_bin() {
  local dir version made_by
  made_by=$(postgres_made_by)
  for dir in ${BENCHTRAIL_PG_BIN:-} $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) \
    $(command -v postgres >/dev/null && dirname "$(readlink -f "$(command -v postgres)")"); do
    if [ ! -x "$dir/postgres" ] || [ ! -x "$dir/initdb" ]; then continue; fi
    version=$("$dir/postgres" --version | grep -oE '[0-9]+' | head -n 1)
    if [ "$version" = "${made_by:-$version}" ] && [ "$version" -ge "$POSTGRES_MIN" ]; then echo "$dir"; return; fi
  done
}
