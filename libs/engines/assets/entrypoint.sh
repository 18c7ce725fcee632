#!/bin/bash
# Entrypoint of an engine's container. It replaces the image's own, whose temporary server answers before the real one.
#
# 1. One server per volume: the lock on a file in the volume's root is taken before anything is read, and the server
#    inherits its descriptor. postmaster.pid cannot see the process of another container; a kernel lock can.
# 2. A data directory exists whole or not at all: it is built beside its place and moved there once it is synced.
# 3. The volume says whose it is, and a volume of somebody else is not started.
#
# Told by the container's environment, which holds no secret: SUREFOOT_VOLUME, where the volume is mounted, and
# SUREFOOT_VOLUME_MARK, the line that its mark file must hold.
set -Eeuo pipefail
umask 077

readonly conf=/etc/surefoot
readonly volume=${SUREFOOT_VOLUME:?is set by the container}
readonly mark=${SUREFOOT_VOLUME_MARK:?is set by the container}
export PGDATA=$volume/pgdata
readonly building=$volume/pgdata.init

# Fifths of a second that a server that is just ending gets. The restart policy comes back later anyway.
readonly lock_tries=25

say() { echo "surefoot: $*" >&2; }
# 75: try again later (sysexits.h, EX_TEMPFAIL); 78: this configuration cannot work (EX_CONFIG).
refuse() { local code=$1; shift; say "$*"; exit "$code"; }

# Field 5 of mountinfo is the mount point. Data outside the named volume is lost with the container.
mounted() {
  local line fields
  while read -r line; do
    read -ra fields <<<"$line"
    [ "${fields[4]}" = "$volume" ] && return 0
  done </proc/self/mountinfo
  return 1
}
mounted || refuse 78 "$volume is not a mount point: the data would not be in the engine's volume"

exec 9>>"$volume/surefoot.lock"
tries=0
until flock -n 9; do
  tries=$((tries + 1))
  [ "$tries" -lt "$lock_tries" ] || refuse 75 "another server holds the lock of this volume"
  sleep 0.2
done

if [ -e "$volume/surefoot.mark" ]; then
  [ "$(<"$volume/surefoot.mark")" = "$mark" ] || refuse 78 "this volume is marked as another engine's: $(<"$volume/surefoot.mark")"
elif [ -e "$PGDATA" ]; then
  refuse 78 "this volume holds a data directory and no mark"
fi

chmod 0700 "$volume"
# In memory, since only here can the key have the owner and mode that the server demands: on the host it belongs to
# whoever runs the worker. Below /tmp, which has its mode from the image: a folder that only the mount makes gets another
# mode when the container is started again.
readonly keys=/tmp/surefoot
mkdir -p "$keys"
cp "$conf/server.key" "$conf/server.crt" "$keys"
chmod 0600 "$keys"/*

if [ ! -e "$PGDATA" ]; then
  say "building a new data directory"
  rm -rf "$building"
  initdb --pgdata="$building" --username=postgres --pwfile="$conf/administrator.verifier" --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C.UTF-8 --data-checksums --no-sync >/dev/null
  # Single-user mode instead of a temporary server: nobody can connect to what is not finished.
  run() { postgres --single -j -F -c exit_on_error=true -D "$building" "$1" <"$conf/$2" >/dev/null; }
  run postgres bootstrap.sql
  run surefoot_control control.sql
  run surefoot_template template.sql
  initdb --sync-only --pgdata="$building" >/dev/null
  printf '%s\n' "$mark" >"$volume/surefoot.mark.new"
  sync "$volume/surefoot.mark.new"
  mv "$volume/surefoot.mark.new" "$volume/surefoot.mark"
  mv "$building" "$PGDATA"
  sync "$volume"
  say "the data directory is complete"
fi

# What an ALTER SYSTEM must not be able to change stands here, since the command line wins.
exec postgres -D "$PGDATA" -c config_file="$conf/postgresql.surefoot.conf" \
  -c hba_file="$conf/pg_hba.conf" -c ident_file="$conf/pg_ident.conf" \
  -c listen_addresses='*' -c port=5432 -c unix_socket_directories=/run/surefoot-socket \
  -c ssl=on -c ssl_cert_file="$keys/server.crt" -c ssl_key_file="$keys/server.key" \
  -c fsync=on -c full_page_writes=on -c password_encryption=scram-sha-256
