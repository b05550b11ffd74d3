#!/bin/sh
# verify.sh VERSION PACKAGE...: builds the packages once more, in another directory, with an empty build cache, without
# the network, and with another umask and time zone, and compares them byte by byte.
set -eu
version=$1
shift
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp" && rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

umask 077
mkdir "$tmp/copy"
packaging/rpm/sources.sh | xargs -0 cp --parents --no-dereference --target-directory="$tmp/copy"
what=$(for package; do echo "$package"; done | sed -n 's/.*\.\(.*\)\.rpm$/\1/p')
(
	cd "$tmp/copy"
	# shellcheck disable=SC2086 # one word for each package
	GOCACHE=$tmp/cache GOPROXY=off GOFLAGS=-mod=mod TZ=Asia/Tokyo packaging/rpm/build.sh "$tmp/out" "$version" $what
	for rpm in "$tmp"/out/*.rpm; do
		case $rpm in *.x86_64.rpm | *.aarch64.rpm) TZ=Asia/Tokyo packaging/deb/build.sh "$tmp/out" "$rpm" ;; esac
	done
)
for package; do
	cmp "$package" "$tmp/out/${package##*/}"
	sha256sum "$package"
done
