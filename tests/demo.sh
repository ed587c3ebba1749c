#!/bin/sh
# Three scenes on real input: a correction in a chat and its receipt, a lesson that is told at a call of
# a later session, and a skill that follows a correction for another input. Calls of Claude Code are
# what it passes to its hooks. Works in empty directories; needs no key and no network.
# usage: demo.sh MEMCTL [correction|lesson|skill]
set -eu
memctl=$1
scene=${2:-correction lesson skill}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset ANTHROPIC_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY DATABASE_URL AGENTURA_KNOWLEDGE_DIR AGENTURA_SKILLS_DIR
unset TMUX TMUX_PANE MEMCTL_MODEL
export NO_COLOR=1 HOME="$work"

step() { for line; do printf '# %s\n' "$line"; done; }
# Prints the command of a person as it is typed, with a long text cut, and runs it without its output.
type_in() {
    printf '$ memctl'
    for word; do
        case $word in *\ *) printf " '%.20s…'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    echo
    "$memctl" "$@" >/dev/null
}
# Passes an event of a session to the hook, and prints the text that the agent gets: EVENT SESSION
# FIELDS, the fields as JSON.
hook() {
    printf '{"hook_event_name": "%s", "session_id": "%s", "cwd": "%s", %s}' "$1" "$2" "$PWD" "$3" |
        "$memctl" hook claude-code | sed 's/.*"additionalContext":"//; s/"}*$//' |
        awk '{ gsub(/\\n/, "\n"); gsub(/\\"/, "\""); print }'
}
bash() { printf '"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "%s"}' "$1"; }
worked() { hook PostToolUse "$1" "$(bash "$2"), \"tool_response\": {\"stdout\": \"$3\"}" >/dev/null; }
failed() { hook PostToolUseFailure "$1" "$(bash "$2"), \"error\": \"Exit code 2\\n$3\"" >/dev/null; }
# Shows what the agent reads before a call.
before() { hook PreToolUse "$1" "$(bash "$2")" | grep -v -e '^$' -e '^<' -e 'Use them as facts' | sed 's/^/  /'; }
project() { mkdir -p "$work/$1" && cd "$work/$1" && "$memctl" init --quiet >/dev/null; }
# Shows the receipt of a rule or a lesson.
receipt() { "$memctl" list "$1" | sed -n 's/.*\(told [^]]*\).*/  \1/p'; }

correction() {
    project web
    said="we're a pnpm shop, never npm install"
    step "You correct your coding agent in the chat. It records the rule, and you approve it:"
    echo "  $said"
    hook UserPromptSubmit first "\"prompt\": \"$said\"" >/dev/null
    "$memctl" correct --heard "{\"rule\": \"Install packages with pnpm, never with npm.\", \"not\": \"npm\",
        \"do\": \"pnpm\", \"quote\": \"$said\", \"commands\": [\"^npm (install|i|ci)\\\\b\"]}" >/dev/null
    type_in approve REFL-001
    step "A later session is about to run \`cd app && npm ci\`. The agent reads beside the call:"
    before second "cd app && npm ci"
    worked second "cd app && npm ci" "added 214 packages"
    hook PreToolUse second "$(bash "cd app && pnpm install")" >/dev/null
    worked second "cd app && pnpm install" "Done"
    hook SessionEnd second '"reason": "exit"' >/dev/null
    step "It runs \`pnpm install\`. The receipt, in sessions (\`memctl list rules\`):"
    receipt rules
}

lesson() {
    project shop
    step "A session fails at \`./check\`, finds out what it wants, and is asked for it at its end:"
    echo "  check: no target: --target web or --target api"
    failed first ./check "check: no target: --target web or --target api"
    worked first "./check --target web" "all 214 checks passed"
    hook Stop first '"stop_hook_active": false, "transcript_path": "none"' >/dev/null
    "$memctl" lesson add '{"lesson": "Run the checks with `./check --target web`.", "commands": ["./check"]}' |
        sed 's/^[^:]*: /  /'
    step "A later session is about to run \`./check\`. The agent reads before the call:"
    before second ./check
    worked second "./check --target web" "all 214 checks passed"
    step "It runs \`./check --target web\`. The receipt (\`memctl list lessons\`):"
    receipt lessons
}

# Runs the skill, and prints a name with the score.
screen() {
    "$memctl" run hr/resume-screen --input "$2" 2>&1 |
        sed -n "s/.*\"overall_score\": \([0-9]*\).*/  $1: \1/p; s/^rules:  *REFL/    by rule REFL/p"
}

skill() {
    cp -R "$here/skills" "$here/fixtures" "$here/.agentura" "$work"
    cd "$work"
    jane=fixtures/sample_input.json
    marco=fixtures/demo/candidate.json
    said="When screening for senior backend roles, system design experience should be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60."
    step "A skill scores two candidates too high: neither knows distributed systems. You correct Jane once:"
    # A script stands for the model: it weighs system design separately only if a rule in its prompt says so.
    export MEMCTL_MODEL=scripted:fixtures/demo/model.jsonl
    screen Marco $marco
    screen Jane $jane
    type_in correct hr/resume-screen "$said" --execution-id latest --model offline
    step "Marco again. Nobody corrected his score, but the rule is in his prompt:"
    screen Marco $marco
}

for one in $scene; do
    (unset MEMCTL_MODEL; "$one")
    [ "$one" = "${scene##* }" ] || echo
done
