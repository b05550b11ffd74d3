#!/bin/sh
# build.sh OUT RPM: builds a system extension from the files in an RPM, for images whose /usr is read-only: systemd-sysext(8).
# The same RPM results in the same bytes.
set -eu
umask 022
mkdir -p "$1"
out=$(realpath "$1") rpm=$2 name=nm-azure-dispatch
SOURCE_DATE_EPOCH=$(rpm -qp --qf '%{BUILDTIME}' "$rpm")
export SOURCE_DATE_EPOCH
case $(rpm -qp --qf '%{ARCH}' "$rpm") in
x86_64) arch=x86-64 ;;
aarch64) arch=arm64 ;;
*) echo "build.sh: $rpm: want a package for x86_64 or aarch64" >&2; exit 1 ;;
esac

top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$top/tree"
rpm2cpio "$rpm" | cpio --quiet --extract --make-directories --directory="$top/tree"
cd "$top/tree"

# If extensions are merged after systemd has started, links in the .wants directories of units that are already active
# have no effect. So multi-user.target is started again.
mkdir -p usr/lib/systemd/system/multi-user.target.wants usr/lib/extension-release.d
ln -s ../nm-azure-checkin.service usr/lib/systemd/system/multi-user.target.wants/
# For any distribution, because the program is static.
printf 'ID=_any\nARCHITECTURE=%s\nEXTENSION_RELOAD_MANAGER=1\n' $arch >usr/lib/extension-release.d/extension-release.$name
chmod -R u=rwX,go=rX .
mksquashfs . "$top/raw" -quiet -no-progress -all-root -no-xattrs -comp xz >/dev/null
mv "$top/raw" "$out/$name-$arch.raw"
