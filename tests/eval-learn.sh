#!/bin/sh
# Measures `learn` on labelled session files. TRANSCRIPTS is a folder that holds `raw/`, and beside
# it a `score.py` that takes a file of predictions: `{"id", "fail_step", "success_step"}` a line.
# What follows is given to `score.py` as it is.
set -eu
memctl=$1
shift
: "${TRANSCRIPTS:?the folder that holds raw/ and score.py}"
predictions=$(mktemp)
workspace=$(mktemp -d)
trap 'rm -rf "$predictions" "$workspace"' EXIT
"$memctl" --root "$workspace" learn --dry-run --json "$TRANSCRIPTS/raw" | python3 -c '
import json, os, sys
for episode in json.load(sys.stdin)["episodes"]:
    name = os.path.splitext(os.path.basename(episode["transcript"]))[0]
    print(json.dumps({"id": name, "fail_step": episode["fail_step"], "success_step": episode["success_step"]}))
' > "$predictions"
python3 "$TRANSCRIPTS/score.py" "$predictions" "$@"
