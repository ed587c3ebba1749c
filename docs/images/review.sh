#!/bin/sh
# Makes review.svg from the real screen of `memctl review`, in a terminal of tmux:
# `docs/images/review.sh target/release/memctl > docs/images/review.svg`.
set -eu
memctl=$(realpath "$1")
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'tmux -S "$work/tmux" kill-server; rm -rf "$work"' EXIT
mkdir "$work/home" "$work/shop"
cp -R "$here/skills" "$here/fixtures" "$work/shop"
cd "$work/shop"
export HOME="$work/home" MEMCTL_MODEL=offline
{
    "$memctl" init
    "$memctl" learn fixtures/sessions
    "$memctl" correct hr/resume-screen "Never name competitors in the summary"
    "$memctl" correct hr/resume-screen "Always name competitors in the summary"
} > "$work/log" 2>&1
tmux -u -S "$work/tmux" -f /dev/null new-session -d -x 100 -y 24 "$memctl review"
sleep 2
tmux -S "$work/tmux" send-keys j j j
sleep 1
tmux -S "$work/tmux" capture-pane -p | python3 "$here/docs/images/record.py"
