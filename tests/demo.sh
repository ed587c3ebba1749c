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

step() { printf '\n'; for line; do printf '# %s\n' "$line"; done; }
indent() { fold -s -w 96 | sed 's/^/  /; s/ *$//'; }
# Prints the command as it is typed, with a long text cut, and runs it.
show() {
    printf '$ memctl'
    for word; do
        case $word in *\ *) printf " '%.16s…'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    echo
    "$memctl" "$@"
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
# Shows what the agent reads before a call, and how long the hook took.
before() {
    step "A later session is about to run:  $2" "The hook answers beside the call:"
    hook PreToolUse "$1" "$(bash "$2")" | grep -v -e '^$' -e '^<' | indent
}
project() { mkdir -p "$work/$1" && cd "$work/$1" && "$memctl" init --quiet >/dev/null; }

correction() {
    project web
    said="we're a pnpm shop, never npm install"
    step "You correct your coding agent in the chat:"
    echo "  $said"
    hook UserPromptSubmit first "\"prompt\": \"$said\"" >/dev/null
    step "A hook asks the agent to record it, with your exact words and how such a call looks."
    show correct --heard "{\"rule\": \"Install packages with pnpm, never with npm.\", \"not\": \"npm\",
        \"do\": \"pnpm\", \"quote\": \"$said\", \"commands\": [\"^npm (install|i|ci)\\\\b\"]}" |
        grep -E '^(\$|rule)'
    step "Nothing acts before you approve it: one key in \`memctl review\`, or"
    show approve REFL-001 | grep -E '^\$|at calls'
    before second "cd app && npm ci"
    worked second "cd app && npm ci" "added 214 packages"
    hook PreToolUse second "$(bash "cd app && pnpm install")" >/dev/null
    worked second "cd app && pnpm install" "Done"
    hook SessionEnd second '"reason": "exit"' >/dev/null
    step "The agent reads it with the output, and runs \`pnpm install\`. The receipt:"
    show stats | grep -E -A 1 '^\$|^At calls' | grep -v -e '^--' -e '^20'
}

lesson() {
    project shop
    step "An agent tries a script of the project in vain, and finds out what it wants:"
    printf '  ./check            check: no target: --target web or --target api\n'
    printf '  ./check --target web           all 214 checks passed\n'
    failed first ./check "check: no target: --target web or --target api"
    worked first "./check --target web" "all 214 checks passed"
    step "At its end it is asked once what the session found out. It answers in one line:"
    hook Stop first '"stop_hook_active": false, "transcript_path": "none"' >/dev/null
    show lesson add '{"lesson": "Run the checks with `./check --target web`.", "commands": ["./check"]}'
    before second ./check
    worked second "./check --target web" "all 214 checks passed"
    step "You approve it, and git shares it with your team."
    show approve PROC-001 | grep -E '^\$|approved$'
    show list lessons
}

screen() { show run hr/resume-screen --input "$1" 2>&1 | grep -E '^\$|overall_score|recommendation|^rules'; }

skill() {
    cp -R "$here/skills" "$here/fixtures" "$here/.agentura" "$work"
    cd "$work"
    jane=fixtures/sample_input.json
    marco=fixtures/demo/candidate.json
    said="When screening for senior backend roles, system design experience should be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60."
    step "A skill judges two candidates; neither knows distributed systems. A script stands for the model:" \
        "it weighs system design separately only if a rule in its prompt says so. Both scores are too high."
    export MEMCTL_MODEL=scripted:fixtures/demo/model.jsonl
    screen $marco
    screen $jane
    step "Correct the result for Jane once. It becomes a rule, a guardrail and a regression test:"
    show correct hr/resume-screen "$said" --execution-id latest --model offline |
        grep -E '^\$|^(correction|rule|guardrail|tests)' | cut -c 1-98
    step "Marco again. Nobody corrected this result, but the rule applies to it:"
    screen $marco
}

for one in $scene; do
    (unset MEMCTL_MODEL; "$one")
done
