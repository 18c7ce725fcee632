#!/usr/bin/env bash
# Turns the environment's connection string into PgBouncer's configuration, then becomes PgBouncer. Clients log in to it
# with the user and password of the connection string, and it logs in to the database with the same, over TLS, after it
# has verified the server. The password is in no argument and no variable of the environment: bash reads it from one
# file, and writes it into another, in memory, that only this container's user can read.
set -euo pipefail
umask 077

fail() {
  printf 'entrypoint: %s\n' "$*" >&2
  exit 1
}

# %41 → A
decoded() {
  printf '%b' "${1//%/\\x}"
}

# As PgBouncer's list of users has it: quotes within are doubled.
quoted() {
  printf '"%s"' "${1//\"/\"\"}"
}

url=$(< /run/surefoot/database_url)
[[ $url =~ ^postgres(ql)?://([^:@/]+):([^@/]*)@([^:/]+):([0-9]+)/[^?]+\?(.*)$ ]] ||
  fail '/run/surefoot/database_url is not postgresql://user:password@host:port/database?parameters'
user=$(decoded "${BASH_REMATCH[2]}")
password=$(decoded "${BASH_REMATCH[3]}")
host=${BASH_REMATCH[4]} port=${BASH_REMATCH[5]}
[[ ${BASH_REMATCH[6]} =~ (^|&)sslrootcert=([^&]+) ]] || fail 'the connection string names no sslrootcert'
ca=$(decoded "${BASH_REMATCH[2]}")

# Memory, and writable even where the root file system is not.
folder=/dev/shm/pgbouncer
mkdir -p "$folder"
printf '%s %s\n' "$(quoted "$user")" "$(quoted "$password")" > "$folder/users.txt"
cat > "$folder/pgbouncer.ini" <<INI
[databases]
; Whichever a client names: the server lets this user into its own only.
* = host=$host port=$port

[pgbouncer]
listen_addr = *
listen_port = 6432
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $folder/users.txt
server_tls_sslmode = verify-full
server_tls_ca_file = $ca
pool_mode = transaction
default_pool_size = ${POOL_SIZE:-10}
max_client_conn = ${CLIENTS_MAX:-500}
; Drivers set these at the start of a connection.
ignore_startup_parameters = extra_float_digits
INI

exec pgbouncer "$folder/pgbouncer.ini"
