#!/bin/sh
# go-test.sh ARGUMENT...: go test. If that fails, it ends with the names of the failed tests, and the beginning of what each
# of them printed: of a long log that may be all that is kept.
log=$(mktemp) || exit
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM
{ "${GO:-go}" test "$@" 2>&1 || echo "$?" >"$log.status"; } | tee "$log"
[ -e "$log.status" ] || exit 0
read -r status <"$log.status"
rm "$log.status"
echo "Failed tests:"
awk '
	/^ *--- FAIL: |^FAIL\t|^panic: test timed out/ { print; n = 12; next }
	/^ *--- |^FAIL$|^ok|^ *=== / { n = 0 } # also where what the lab logged begins
	n-- > 0 { print substr($0, 1, 160) }' "$log" | head -c 2500
exit "$status"
