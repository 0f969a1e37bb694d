#!/bin/sh
# After trunk has built the page: moves the inline script that starts the program into a file of its own, named by its
# content, so that the page runs under a Content-Security-Policy without 'unsafe-inline'. Trunk sets TRUNK_STAGING_DIR.
set -eu
page=$TRUNK_STAGING_DIR/index.html
boot=$TRUNK_STAGING_DIR/boot.js
awk -v boot="$boot" 'BEGIN { RS = "\001" } {
  done = ""; rest = $0
  while (match(rest, /<script[^>]*>/)) {
    tag = substr(rest, RSTART, RLENGTH)
    inner = substr(rest, RSTART + RLENGTH)
    stop = index(inner, "</script>")
    if (tag !~ /src=/) {
      printf "%s", substr(inner, 1, stop - 1) > boot
      printf "%s%s@BOOT@%s", done, substr(rest, 1, RSTART - 1), substr(inner, stop + 9)
      exit
    }
    done = done substr(rest, 1, RSTART + RLENGTH - 1)
    rest = inner
  }
}' "$page" >"$page.new"
[ -s "$boot" ] || { echo "externalise-boot: no inline script found in $page" >&2; exit 1; }
name=boot-$(sha256sum "$boot" | cut -c1-16).js
mv "$boot" "$TRUNK_STAGING_DIR/$name"
sed "s|@BOOT@|<script type=\"module\" src=\"/$name\"></script>|" "$page.new" >"$page"
rm "$page.new"
