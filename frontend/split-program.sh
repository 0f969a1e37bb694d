#!/bin/sh
# After trunk has built the page: puts the program in its place in parts. trunk makes one file of it and starts it by an
# inline script; here it is split at the functions marked `wasm_split`, so that a page loads what it needs, its parts are
# kept in a folder named by their content, and it is started by its own binding to the browser (app/src/charts/plot.js), as
# the page's Content-Security-Policy wants. trunk sets TRUNK_STAGING_DIR and TRUNK_PROFILE, scripts/build CARGO_TARGET_DIR.
set -eu
page=$TRUNK_STAGING_DIR/index.html
case $TRUNK_PROFILE in release) profile=wasm-release ;; *) profile=wasm-dev ;; esac
program=$CARGO_TARGET_DIR/wasm32-unknown-unknown/$profile/benchtrail-frontend.wasm
parts=$(mktemp -d "$TRUNK_STAGING_DIR/parts.XXXXXX")
chmod 755 "$parts"

wasm-split-cli --target web --out-name app "$program" "$parts"
# The parts find what they share by the names that the linker gave it: those are kept.
wasm-bindgen --target web --keep-lld-exports --no-demangle --remove-name-section --remove-producers-section \
  --out-name app --out-dir "$parts/bound" "$parts/app.wasm"
rm "$parts/app.wasm"
mv "$parts"/bound/* "$parts"
rm -r "$parts/bound"
find "$parts" -name '*.d.ts' -delete
# wasm-bindgen took the names of functions out of the main part.
find "$parts" -name '*.wasm' ! -name app_bg.wasm -exec perl frontend/strip-names.pl {} +

# trunk's own one-file program is of no use any more.
rm -rf "$TRUNK_STAGING_DIR"/benchtrail-frontend-* "$TRUNK_STAGING_DIR/snippets"

hash=$(cd "$parts" && find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16)
folder=app-$hash
mv "$parts" "$TRUNK_STAGING_DIR/$folder"

# Which files each part is: itself and what it shares with others, as the loader says it. For the control plane, which has
# the browser fetch them together with the first part.
awk -v folder="/$folder/" '
  /^export const __wasm_split_load_/ { part = $0; sub(/^export const __wasm_split_load_/, "", part); sub(/ .*/, "", part) }
  part != "" && /^, \[/ {
    list = $0; sub(/^, \[/, "", list); sub(/\].*/, "", list); count = split(list, shared, /, */)
    printf "%s\"%s\":[\"%ssplit_%s.wasm\"", (began++ ? "," : "{"), part, folder, part
    for (n = 1; n <= count; n++) if (shared[n] != "") { sub(/^__/, "", shared[n]); printf ",\"%s%s.wasm\"", folder, shared[n] }
    printf "]"; part = ""
  }
  END { if (began) print "}"; else { print "split-program: the loader names no parts" > "/dev/stderr"; exit 1 } }
' "$TRUNK_STAGING_DIR/$folder/__wasm_split.js" >"$TRUNK_STAGING_DIR/parts.json"

# The binding starts the program; what that is made of it reads from the page: the other modules, the first part, its start.
binding=$(cd "$TRUNK_STAGING_DIR" && find "$folder" -name plot.js)
[ -f "$TRUNK_STAGING_DIR/$binding" ] || { echo "split-program: not one file binds the program: '$binding'" >&2; exit 1; }
modules=$(cd "$TRUNK_STAGING_DIR" && find "$folder" -name '*.js' | LC_ALL=C sort |
  sed 's|.*|<meta name="program-module" content="/&">|' | tr -d '\n')
head="<meta name=\"program-start\" content=\"/$folder/app.js\"><meta name=\"program-part\" content=\"/$folder/app_bg.wasm\">$modules"
head="$head<script type=\"module\" src=\"/$binding\"></script>"
awk -v head="$head" 'BEGIN { RS = "\001" } {
  gsub(/<link[^>]*benchtrail-frontend-[^>]*>/, "")
  gsub(/<link[^>]*\/snippets\/[^>]*>/, "")
  # The one inline script.
  while (match($0, /<script type="module"[^>]*>/)) {
    stop = index(substr($0, RSTART), "</script>")
    $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + stop + 8)
  }
  sub(/<\/head>/, head "</head>")
  printf "%s", $0
}' "$page" >"$page.new"
grep -q "program-start" "$page.new" || { echo "split-program: $page has no head to start the program in" >&2; exit 1; }
mv "$page.new" "$page"
