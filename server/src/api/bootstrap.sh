#!/bin/sh
# Installs the Benchtrail agent (version @VERSION@) on this host and enrols it with a one-time token.
#
#   curl -fsSL -o agent-bootstrap.sh …/api/agent/bootstrap.sh && sudo env BENCHTRAIL_ENROL_TOKEN=bt_e_… sh agent-bootstrap.sh
#
# Every program comes from the control plane and is checked against its SHA-256 below before it is put in place. Run
# again with a new token, it brings the newest programs and enrols anew. Settings, all in the environment:
#   BENCHTRAIL_ENROL_TOKEN  the one-time token (needed)
#   BENCHTRAIL_BIN_DIR      where the programs go        [/usr/local/bin]
#   BENCHTRAIL_STATE_DIR    identity, policy, reports    [/var/lib/benchtrail-agent]
#   BENCHTRAIL_SERVICE      `no` leaves systemd alone
set -eu

URL=@URL@
MACHINE=@MACHINE@
PROGRAMS='@PROGRAMS@'

fail() {
  printf 'benchtrail: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '            %s\n' "$2" >&2
  exit 1
}

fetch() { # NAME SHA256 FILE
  curl -fsSL --retry 3 --connect-timeout 10 -o "$3" "$URL/api/agent/programs/$1" ||
    fail "$1 could not be fetched from $URL" "check that this host reaches the control plane, then run the command again"
  printf '%s  %s\n' "$2" "$3" | sha256sum -c >/dev/null 2>&1 ||
    fail "$1 is not the program that the control plane named (SHA-256 $2)" "nothing was installed; fetch the script again, and tell who runs the control plane"
}

service() { # BIN STATE
  cat >/etc/systemd/system/benchtrail-agent.service <<UNIT
[Unit]
Description=Benchtrail agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=$1/benchtrail-agent --state-dir $2 run
Restart=always
RestartSec=5
# The agent ends its model servers and load generators itself.
KillMode=mixed
TimeoutStopSec=120

[Install]
WantedBy=multi-user.target
UNIT
  systemctl daemon-reload
  systemctl enable benchtrail-agent
  systemctl restart benchtrail-agent
  echo "The agent runs as the service benchtrail-agent; its log: journalctl -u benchtrail-agent"
}

main() {
  bin=${BENCHTRAIL_BIN_DIR:-/usr/local/bin}
  state=${BENCHTRAIL_STATE_DIR:-/var/lib/benchtrail-agent}
  [ "$(uname -s)" = Linux ] || fail "the agent runs on Linux, this is $(uname -s)"
  [ "$(uname -m)" = "$MACHINE" ] ||
    fail "the control plane has programs for $MACHINE, this host is $(uname -m)" "build the agent on this host, then run: benchtrail-agent enrol --url $URL"
  [ -n "${BENCHTRAIL_ENROL_TOKEN:-}" ] || fail "there is no token" "set BENCHTRAIL_ENROL_TOKEN to the one-time token that the page shows"
  for needed in curl sha256sum mktemp; do
    command -v "$needed" >/dev/null || fail "the program $needed is missing on this host" "install it, then run the command again"
  done
  mkdir -p "$bin" 2>/dev/null && [ -w "$bin" ] || fail "$bin cannot be written" "run the command with sudo, or set BENCHTRAIL_BIN_DIR"

  # Beside their place, so that each is put there in one step.
  work=$(mktemp -d "$bin/.benchtrail.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "$PROGRAMS" | while read -r sha name; do
    fetch "$name" "$sha" "$work/$name"
    chmod 755 "$work/$name"
  done
  echo "$PROGRAMS" | while read -r sha name; do
    mv "$work/$name" "$bin/$name"
    echo "installed $bin/$name"
  done

  "$bin/benchtrail-agent" --state-dir "$state" enrol --url "$URL" --bin-dir "$bin" --force
  if [ "${BENCHTRAIL_SERVICE:-}" != no ] && [ -d /run/systemd/system ] && command -v systemctl >/dev/null; then
    service "$bin" "$state"
  else
    echo "No systemd here: start the agent with"
    echo "  $bin/benchtrail-agent --state-dir $state run"
  fi
}

main "$@"
