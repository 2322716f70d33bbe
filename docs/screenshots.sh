#!/usr/bin/env bash
# Pictures of a page of --report, on a phone and on a desktop, in light and dark, for the eye: no test
# needs them. Needs Chromium (Debian: apt-get install chromium).
#
#   docs/screenshots.sh report.html DIR
set -euo pipefail
page=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# as root, Chromium runs only without its sandbox
sandbox=$([ "$(id -u)" = 0 ] && echo --no-sandbox || true)

# a headless window is never narrower than 500 pixels, so a phone is a frame in it
frame=$(mktemp --suffix=.html)
trap 'rm -f "$frame"' EXIT
cat > "$frame" <<HTML
<!DOCTYPE html><html><body style="margin:0"><iframe src="file://$page" style="border:0;width:390px;height:8000px"></iframe></body></html>
HTML

shot() { # NAME WIDTH HEIGHT FILE [FLAG]
  "$browser" --headless=new $sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
    --window-size="$2,$3" --screenshot="$out/$1.png" ${5:+"$5"} "file://$4" > /dev/null 2>&1
  echo "$out/$1.png"
}
dark=--blink-settings=preferredColorScheme=0
shot phone-light 500 8000 "$frame"
shot phone-dark 500 8000 "$frame" "$dark"
shot desktop-light 1280 5000 "$page"
shot desktop-dark 1280 5000 "$page" "$dark"
