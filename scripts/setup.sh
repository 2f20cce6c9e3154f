#!/bin/sh
# Installs missing system packages that Sandglass needs: bubblewrap and a Python >= 3.10.
# Prints nothing when both are installed. Never fails: a later step that needs a missing program names it with its remedy.
set -u

has_python() {
  for python in python3 python3.10 python3.11 python3.12 python3.13 python3.14 python3.15 /usr/bin/python3; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 && return 0
  done
  return 1
}

missing=''
if [ "$(uname -s)" = Linux ] && ! command -v bwrap >/dev/null 2>&1; then missing='bubblewrap'; fi
has_python || missing="$missing python3"
missing=${missing# }
[ -n "$missing" ] || exit 0

by_hand() {
  echo "setup: $1; install by hand: $missing (Python must be 3.10 or later)" >&2
  exit 0
}

command -v apt-get >/dev/null 2>&1 || by_hand 'no apt-get on this machine'
if [ "$(id -u)" = 0 ]; then
  as_root=''
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  as_root='sudo -n'
else
  by_hand 'not root and no sudo without a password'
fi

echo "setup: installing $missing" >&2
log=$(mktemp) || exit 0
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # $as_root and $missing hold words
if ! { $as_root apt-get update -q &&
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing; } \
  >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  by_hand 'apt-get failed (its last lines are above)'
fi
has_python || {
  missing='python3'
  by_hand 'the python3 of this distribution is older than 3.10'
}
