#!/bin/sh
# build.sh OUT VERSION sources|src|ARCH...: builds the archives that the spec names, the source package, or the package for
# an architecture, from the files of the working tree. The build is reproducible.
set -eu
umask 022
export LC_ALL=C TZ=UTC

name=nm-azure-dispatch
mkdir -p "$1"
out=$(realpath "$1") version=$2
shift 2
spec=packaging/rpm/$name.spec

top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$top/SOURCES" "$top/SPECS"

# All times are that of the newest entry in the changelog.
SOURCE_DATE_EPOCH=$(date +%s -d "$(sed -n 's/^\* \(... ... .. ....\) .*/\1/p' $spec | head -n 1)")
export SOURCE_DATE_EPOCH

# pack TARBALL ARG...: tar takes what is to be packed from ARG.
pack() {
	to=$1
	shift
	tar --create --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--mode=u+rw,go=rX,go-w "$@" | gzip -n9 >"$to"
}
packaging/rpm/sources.sh >"$top/files"
pack "$top/SOURCES/$name-$version.tar.gz" --transform="flags=r;s,^,$name-$version/," \
	--null --verbatim-files-from --files-from="$top/files"
tar --extract --gzip --file="$top/SOURCES/$name-$version.tar.gz" --directory="$top"
(
	cd "$top/$name-$version"
	"${GO:-go}" mod vendor
	pack "$top/SOURCES/$name-$version-vendor.tar.gz" vendor
)
sed "s/^\(Version: *\).*/\1$version/" $spec >"$top/SPECS/$name.spec"

# build TOPDIR ARG...
# build_mtime_policy is the clamp in rpm 4.20. brp-compress is a bash script, which Debian's rpm gives to its sh.
build() {
	topdir=$1
	shift
	rpmbuild --quiet \
		--define "_topdir $topdir" --define '_buildhost localhost' \
		--define 'use_source_date_epoch_as_buildtime 1' \
		--define 'clamp_mtime_to_source_date_epoch 1' --define 'build_mtime_policy clamp_to_source_date_epoch' \
		--define '_source_payload w19.zstdio' --define '_binary_payload w19.zstdio' \
		--define '_docdir_fmt %%{NAME}' \
		--define '__brp_compress /bin/bash /usr/lib/rpm/brp-compress' \
		"$@" "SPECS/$name.spec" >"$top/log" 2>&1 || { cat "$top/log" >&2; exit 1; }
}
cd "$top"
for what; do
	case $what in
	sources) cp -t "$out" SOURCES/* ;;
	src) build /proc/self/cwd -bs ;; # the spec with all its paths becomes a part of the source package
	*) build "$top" -bb --target "$what-linux" ;;
	esac
done
find "$top" -path '*RPMS/*' -name '*.rpm' -exec mv -t "$out" {} +
