#!/bin/sh
# release.sh VERSION: checks that this commit can be released as VERSION, and leaves in dist/release/ what is published: the
# packages, their SBOMs, SHA256SUMS, and the notes for the tag. It makes no tag and publishes nothing.
set -eu
export LC_ALL=C
version=$1 out=dist/release notes=dist/release/notes.md

fail() { echo "release.sh: $*" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || fail "there are uncommitted changes: commit them first"
[ -z "$(git tag --list "v$version")" ] || fail "the tag v$version exists: set Version in the spec to the next one"
grep -q "^\* .* - $version-1\$" packaging/rpm/nm-azure-dispatch.spec || fail "the %changelog of the spec has no $version-1"
grep -Eq "^## $version - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
	fail "CHANGELOG.md has no line \"## $version - YYYY-MM-DD\": replace \"unreleased\" by the date"

make rpm deb sysext
rm -rf $out
mkdir -p $out
cp -t $out dist/nm-azure-dispatch-"$version"-1.src.rpm dist/nm-azure-dispatch-"$version"-1.*.cdx.json \
	dist/nm-azure-dispatch-"$version"-1.x86_64.rpm dist/nm-azure-dispatch-"$version"-1.aarch64.rpm \
	dist/nm-azure-dispatch-dracut-"$version"-1.noarch.rpm dist/nm-azure-dispatch*_"$version"-1_*.deb \
	dist/nm-azure-dispatch-x86-64.raw dist/nm-azure-dispatch-arm64.raw
(cd $out && sha256sum -- * >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)

# The section of the version, with a first line for the tag's subject.
{
	printf 'nm-azure-dispatch %s\n\n' "$version"
	awk -v heading="## $version - " 'index($0, "## ") == 1 { on = index($0, heading) == 1; next } on' CHANGELOG.md | sed '1{/^$/d}'
} >$notes
[ "$(wc -l <$notes)" -gt 3 ] || fail "CHANGELOG.md says nothing about $version"
ls -l $out
echo "next: git tag --sign --file=$notes --cleanup=verbatim v$version"
