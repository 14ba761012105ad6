#!/usr/bin/env bash
# Makes the archives beside it: for each protocol the data directories of three members, as a program of an earlier
# version leaves them. Usage: make.sh BRAID, where BRAID is that program.
#
# Each cluster has 30 keys, a value of 20 kB, and a few keys that were deleted, and its members have snapshots of their
# logs. Then m1 is told to stop, and m2 and m3 are killed.
set -euo pipefail
braid=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
base=${2:-23790}
tmp=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$tmp"' EXIT
initial=m1=http://127.0.0.1:$((base + 1)),m2=http://127.0.0.1:$((base + 3)),m3=http://127.0.0.1:$((base + 5))
ctl() { "$braid" ctl --endpoints "127.0.0.1:$base" "$@" >/dev/null; }

for protocol in raft craft niagara lcr multi-paxos iss; do
	more=()
	[[ $protocol == craft ]] && more=(--code-k 2)
	[[ $protocol == niagara ]] && more=(--instances 2)
	pids=()
	for i in 1 2 3; do
		"$braid" serve --name "m$i" --data-dir "$tmp/$protocol/$i" --protocol "$protocol" "${more[@]}" --snapshot-bytes 20000 \
			--large-value-bytes 4096 --listen-client-urls "http://127.0.0.1:$((base + 2 * i - 2))" \
			--listen-peer-urls "http://127.0.0.1:$((base + 2 * i - 1))" --initial-cluster "$initial" 2>"$tmp/log$i" &
		pids+=($!)
	done
	until ctl endpoint health 2>/dev/null; do read -rt 0.2 <> <(:) || true; done
	for n in $(seq 30); do
		ctl put "key-$n" "$(printf "value $n %.0s" {1..80})"
	done
	ctl put large "$(printf '%04d-' {1..4000})"
	ctl del key-30
	ctl put last "$protocol"
	kill -TERM "${pids[0]}"
	wait "${pids[0]}" || true
	kill -9 "${pids[1]}" "${pids[2]}"
	wait "${pids[1]}" "${pids[2]}" 2>/dev/null || true
	tar -C "$tmp/$protocol" --sort=name --owner=0 --group=0 --mtime=@0 -S -cf - 1 2 3 | gzip -9n >"$here/$protocol.tar.gz"
	du -sh "$tmp/$protocol"
done
