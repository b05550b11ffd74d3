#!/bin/sh
# fresh.sh SUITE: runs "make demo" on a fresh machine: a minimal Debian tree with make and ca-certificates, the Go
# toolchain that runs here, and this checkout as git has it, with uncommitted changes to tracked files. The umask is
# 027, as on a hardened machine. All else that the tree gets from this machine is what its network needs: resolv.conf,
# local certificate authorities, apt's Acquire options, and Go's settings for the proxy.
set -eu
suite=$1
go=${GO:-go}
[ "$(id -u)" = 0 ] || { echo "fresh.sh: this needs root" >&2; exit 1; }

if [ -z "${FRESH_TOP-}" ]; then
	FRESH_TOP=$(mktemp -d -p /var/tmp nm-azure-fresh.XXXXXX)
	export FRESH_TOP
	trap 'rm -rf --one-file-system "$FRESH_TOP"' EXIT
	trap 'exit 1' HUP INT TERM
	# What is mounted and started in the tree ends with these namespaces.
	unshare --mount --pid --fork --kill-child --mount-proc "$0" "$suite"
	exit
fi

tree=$FRESH_TOP/tree project=$FRESH_TOP/tree/root/nm-azure-dispatch
umask 022
apt-config dump | grep '^Acquire::' >"$FRESH_TOP/apt.conf" || :
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
	'Component: main' 2>/dev/null | head -n 1)
mmdebstrap --mode=root --variant=minbase --quiet --include=make,ca-certificates --aptopt="$FRESH_TOP/apt.conf" \
	"$suite" "$tree" ${mirror:+"$mirror"}
cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
cp -R /usr/local/share/ca-certificates "$tree/usr/local/share/"
chroot "$tree" update-ca-certificates >/dev/null

# The tree has to be a mount for pivot_root, which the lab's own needs as a root: a chroot is not enough.
mount --bind "$tree" "$tree"
mkdir "$tree/usr/local/go"
mount --bind -o ro "$($go env GOROOT)" "$tree/usr/local/go"
for dir in dev sys; do mount --rbind "/$dir" "$tree/$dir"; done
mount -t proc proc "$tree/proc"

commit=$(git stash create)
umask 027
mkdir "$project"
git archive "${commit:-HEAD}" | tar --extract --no-same-permissions --directory="$project"

set -- PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
for name in GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GONOPROXY GOTOOLCHAIN; do set -- "$@" "$name=$($go env $name)"; done
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
	value=$(printenv $name) && set -- "$@" "$name=$value"
done
cd "$tree"
pivot_root . mnt
exec chroot . env -i "$@" sh -euc 'umount -l /mnt; cd /root/nm-azure-dispatch; make demo'
