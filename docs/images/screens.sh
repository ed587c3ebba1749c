#!/bin/sh
# Makes a picture of a full screen of the program, in a terminal of tmux:
# `docs/images/screens.sh review target/release/memctl > docs/images/review.svg`, and the same with `watch`.
# A test (`cargo test pictures`) runs it and compares the pictures.
set -eu
screen=$1
memctl=$(realpath "$2")
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'tmux -S "$work/tmux" kill-server; rm -rf "$work"' EXIT
mkdir "$work/home" "$work/shop"
cp -R "$here/skills" "$here/fixtures" "$work/shop"
cd "$work/shop"
unset TMUX TMUX_PANE AGENTURA_KNOWLEDGE_DIR AGENTURA_SKILLS_DIR DATABASE_URL
export HOME="$work/home" MEMCTL_MODEL=offline TERM=xterm-256color

open() { tmux -u -S "$work/tmux" -f /dev/null new-session -d -x 100 -y "$1" "$2"; }
shown() { tmux -S "$work/tmux" capture-pane -p; }
# Waits until the screen shows a text, for at most 30 seconds.
await() {
    for _ in $(seq 150); do
        if shown | grep -q -e "$1"; then return; fi
        sleep 0.2
    done
    echo "the screen never showed: $1" >&2
    exit 1
}

"$memctl" init > "$work/log" 2>&1
case $screen in
review)
    {
        "$memctl" learn fixtures/sessions
        "$memctl" correct hr/resume-screen "Never name competitors in the summary"
        "$memctl" correct hr/resume-screen "Always name competitors in the summary"
    } >> "$work/log" 2>&1
    open 24 "$memctl review"
    # The pair comes when the rules are compared.
    await '^similar'
    tmux -S "$work/tmux" send-keys j
    await '^+ git checkout -b prices'
    ;;
watch)
    open 16 "$memctl watch"
    await 'q quits'
    {
        "$memctl" run hr/resume-screen --input fixtures/sample_input.json
        "$memctl" learn fixtures/sessions/codex-stock.jsonl
        "$memctl" memory approve PROC-001
        "$memctl" correct hr/resume-screen "Never name competitors in the summary"
        "$memctl" hook claude-code < fixtures/demo/failing-call.json
    } >> "$work/log" 2>&1
    await '^hint shown'
    await '^EXEC-'
    ;;
*)
    echo "usage: $0 review|watch PROGRAM" >&2
    exit 2
    ;;
esac
shown | python3 "$here/docs/images/record.py"
