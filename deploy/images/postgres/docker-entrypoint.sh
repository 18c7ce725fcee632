#!/usr/bin/env bash
# Makes the data folder at the first start, then becomes the server. Understands the same variables and folders as the
# official image: POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB, POSTGRES_INITDB_ARGS (each also as NAME_FILE),
# POSTGRES_INITDB_WALDIR, POSTGRES_HOST_AUTH_METHOD, PGDATA, /docker-entrypoint-initdb.d.
set -Eeuo pipefail

fail() {
  printf 'docker-entrypoint: %s\n' "$*" >&2
  exit 1
}

# NAME from the file that NAME_FILE names, else from NAME, else the default.
setting() {
  local name=$1 default=${2:-} file_name="${1}_FILE"
  if [[ -n ${!file_name:-} ]]; then
    [[ -z ${!name:-} ]] || fail "set $name or $file_name, not both"
    export "$name=$(< "${!file_name}")"
  else
    export "$name=${!name:-$default}"
  fi
  unset "$file_name"
}

read_settings() {
  setting POSTGRES_PASSWORD
  setting POSTGRES_USER postgres
  setting POSTGRES_DB "$POSTGRES_USER"
  setting POSTGRES_INITDB_ARGS
  export POSTGRES_HOST_AUTH_METHOD=${POSTGRES_HOST_AUTH_METHOD:-}
}

# initdb looks its user up by number, and a container may run under a number that /etc/passwd does not know.
name_the_user() {
  getent passwd "$(id -u)" > /dev/null && return
  local wrapper
  for wrapper in /usr/lib/*/libnss_wrapper.so; do
    NSS_WRAPPER_PASSWD=$(mktemp)
    NSS_WRAPPER_GROUP=$(mktemp)
    printf 'postgres:x:%s:%s:PostgreSQL:%s:/bin/false\n' "$(id -u)" "$(id -g)" "$PGDATA" > "$NSS_WRAPPER_PASSWD"
    printf 'postgres:x:%s:\n' "$(id -g)" > "$NSS_WRAPPER_GROUP"
    export LD_PRELOAD=$wrapper NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP
    return
  done
}

forget_the_name() {
  [[ -n ${NSS_WRAPPER_PASSWD:-} ]] || return 0
  rm -f "$NSS_WRAPPER_PASSWD" "$NSS_WRAPPER_GROUP"
  unset LD_PRELOAD NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP
}

make_cluster() {
  local -a places=()
  [[ -z ${POSTGRES_INITDB_WALDIR:-} ]] || places=(--waldir "$POSTGRES_INITDB_WALDIR")
  name_the_user
  # The arguments are one string by the interface, and may hold quotes, so the shell has to split them.
  eval 'initdb --username="$POSTGRES_USER" --pwfile=<(printf "%s\n" "$POSTGRES_PASSWORD") "${places[@]}" '"$POSTGRES_INITDB_ARGS"
  forget_the_name
  local method=${POSTGRES_HOST_AUTH_METHOD:-$(postgres -C password_encryption -D "$PGDATA")}
  printf '\nhost all all all %s\n' "$method" >> "$PGDATA/pg_hba.conf"
}

sql() {
  psql --set ON_ERROR_STOP=1 --no-psqlrc --no-password --username "$POSTGRES_USER" "$@"
}

run_init_files() {
  local file
  for file in /docker-entrypoint-initdb.d/*; do
    printf 'docker-entrypoint: %s\n' "$file"
    case $file in
      *.sh) if [[ -x $file ]]; then "$file"; else . "$file"; fi ;;
      *.sql) sql --dbname "$POSTGRES_DB" --file "$file" ;;
      *.sql.gz) gunzip --stdout "$file" | sql --dbname "$POSTGRES_DB" ;;
      *) printf 'docker-entrypoint: not a kind of file that is run, left alone\n' ;;
    esac
  done
}

# A server that only this script can reach: nobody connects before the first databases and users are there.
fill_cluster() {
  unset PGHOST PGPORT
  pg_ctl --pgdata "$PGDATA" --wait --options "$(printf '%q ' "${@:2}" -c listen_addresses= -p 5432)" start
  if [[ $POSTGRES_DB != postgres ]]; then
    sql --dbname postgres --set db="$POSTGRES_DB" <<< 'CREATE DATABASE :"db"'
  fi
  shopt -s nullglob
  run_init_files
  pg_ctl --pgdata "$PGDATA" --mode fast --wait stop
  printf '\nPostgreSQL init process complete; ready for start up.\n\n'
}

only_asks() {
  local argument
  for argument; do
    case $argument in -\? | --help | --describe-config | -V | --version) return 0 ;; esac
  done
  return 1
}

[[ ${1:0:1} != - ]] || set -- postgres "$@"

if [[ ${1:-} == postgres ]] && ! only_asks "$@"; then
  if [[ $(id -u) == 0 ]]; then
    mkdir -p "$PGDATA"
    chmod 0700 "$PGDATA"
    find "$PGDATA" /run/postgresql \! -user postgres -exec chown postgres {} +
    if [[ -n ${POSTGRES_INITDB_WALDIR:-} ]]; then
      mkdir -p "$POSTGRES_INITDB_WALDIR"
      chmod 0700 "$POSTGRES_INITDB_WALDIR"
      find "$POSTGRES_INITDB_WALDIR" \! -user postgres -exec chown postgres {} +
    fi
    # Files with secrets may be root's alone: they are read before the rights are given up.
    read_settings
    exec gosu postgres "$BASH_SOURCE" "$@"
  fi
  mkdir -p "$PGDATA"
  # Fails on a folder that a volume brought along; the server checks the mode itself.
  chmod 0700 "$PGDATA" || :
  read_settings
  if [[ ! -s $PGDATA/PG_VERSION ]]; then
    [[ -n $POSTGRES_PASSWORD || $POSTGRES_HOST_AUTH_METHOD == trust ]] ||
      fail 'the data folder is empty and POSTGRES_PASSWORD is not set'
    make_cluster
    export PGPASSWORD=$POSTGRES_PASSWORD
    fill_cluster "$@"
    unset PGPASSWORD
  fi
  unset POSTGRES_PASSWORD
fi

exec "$@"
