#!/bin/sh
# sources.sh: the files of the working tree that make up the source package, each ended by a NUL: all that git does not
# ignore, but it needs no git.
LC_ALL=C
export LC_ALL
find . \( -path ./.git -o -path ./bin -o -path ./dist -o -name '*.test' \) -prune -o ! -type d -printf '%P\0' | sort -z
