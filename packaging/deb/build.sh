#!/bin/sh
# build.sh OUT RPM: builds the Debian package from the files in an RPM, docs/decisions/0030-deb-from-rpm.md. The same RPM
# results in the same bytes.
set -eu
umask 022
export LC_ALL=C TZ=UTC

mkdir -p "$1"
out=$(realpath "$1") rpm=$2 deb=packaging/deb
name=$(rpm -qp --qf '%{NAME}' "$rpm")
version=$(rpm -qp --qf '%{VERSION}-%{RELEASE}' "$rpm")
SOURCE_DATE_EPOCH=$(rpm -qp --qf '%{BUILDTIME}' "$rpm")
export SOURCE_DATE_EPOCH
case $(rpm -qp --qf '%{ARCH}' "$rpm") in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
noarch) arch=all ;;
*) echo "build.sh: $rpm: want a package for x86_64, aarch64 or noarch" >&2; exit 1 ;;
esac

top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
tree=$top/tree doc=$top/tree/usr/share/doc/$name licenses=$top/tree/usr/share/licenses/$name
mkdir -p "$tree/DEBIAN" "$doc"
rpm2cpio "$rpm" | cpio --quiet --extract --make-directories --directory="$tree"

# Debian has licenses and changelogs in the directory of the documentation, and a copy of Apache-2.0 in base-files.
{
	cat $deb/copyright
	for license in $(cd "$licenses" && grep -rL 'Apache License' . | sort); do
		printf '\n%s:\n\n' "$(dirname "${license#./}")"
		cat "$licenses/$license"
	done
} >"$doc/copyright"
rm -r "$tree/usr/share/licenses"
gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
rm -f "$doc/CHANGELOG.md"
control=$deb/$name.control
maintainer=$(sed -n 's/^Maintainer: //p' "$control")
printf '%s (%s) unstable; urgency=medium\n\n  * New version, see changelog.gz.\n\n -- %s  %s\n' \
	$name "$version" "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.Debian.gz"
if [ $arch != all ]; then
	install -D -m 644 $deb/lintian-overrides "$tree/usr/share/lintian/overrides/$name"
	cp $deb/prerm $deb/postrm "$tree/DEBIAN/"
fi
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
size=$(du -sk --apparent-size "$tree/usr" | cut -f1)
sed "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/" "$control" >"$tree/DEBIAN/control"
chmod -R u=rwX,go=rX "$tree"
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$tree" "$top/deb" >/dev/null
mv "$top/deb" "$out/${name}_${version}_$arch.deb"
