#!/bin/sh
# The two loops on real input. A skill is corrected once, and the rule decides about another input;
# an agent's failing call gets what worked in another session from the hook.
# Works on a copy, so that the repository stays as it is. Needs no key and no network.
set -eu
memctl=$1
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$here/skills" "$here/fixtures" "$here/.agentura" "$work"
cd "$work"
unset ANTHROPIC_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY DATABASE_URL AGENTURA_KNOWLEDGE_DIR AGENTURA_SKILLS_DIR
unset TMUX TMUX_PANE MEMCTL_MODEL
export NO_COLOR=1 HOME="$work"

said="When screening for senior backend roles, system design experience should be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60."
jane=fixtures/sample_input.json
marco=fixtures/demo/candidate.json

step() { printf '\n'; for line; do printf '# %s\n' "$line"; done; }
indent() { fold -s -w 96 | sed 's/^/  /; s/ *$//'; }
# Prints the command as it is typed, with a long text cut, and runs it.
show() {
    printf '$ memctl'
    for word; do
        case $word in *\ *) printf ' "%.20s…"' "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    echo
    "$memctl" "$@"
}
screen() { show run hr/resume-screen --input "$1" 2>&1 | grep -E '^\$|overall_score|recommendation|^rules'; }

step "Two candidates, Marco and Jane, for senior backend roles; neither knows distributed systems." \
    "The model is a script, so no key is needed. It follows the prompt and nothing else:" \
    "it weighs system design separately only if a rule in the prompt says so. Both scores are too high."
export MEMCTL_MODEL=scripted:fixtures/demo/model.jsonl
echo "\$ export MEMCTL_MODEL=$MEMCTL_MODEL"
screen $marco
screen $jane

step "Correct the result for Jane once. It becomes a rule and a guardrail, without a model:"
echo "$said" | indent
show correct hr/resume-screen "$said" --execution-id latest --model offline |
    grep -E '^\$|^(correction|rule|confidence|guardrail)'

step "The rule is in the prompt of every later run, between the domain and the skill."
show memory prompt hr/resume-screen | grep -E '^\$|Learned Rules|REFL-' | cut -c 1-98

step "Marco again. Nobody corrected this result, but the rule applies to it:"
screen $marco

step "A session of a coding agent: a recovery by a small change becomes a pattern, without a model."
show learn fixtures/sessions/codex-stock.jsonl |
    grep -E -A 1 '^\$|sessions?:|Permission|auto-detect|learned' | grep -v -e '^--' -e '^codex' | cut -c 1-98

step "Other commands are told of it once a person has approved it."
show memory approve PROC-001 | cut -c 1-98

step "A session of another agent, replayed at its failing call, as Claude Code passes it to the hook:"
call=fixtures/demo/failing-call.json
sed 's/.*"command": "\([^"]*\)".*\(fatal: [^"]*\)".*/\1|\2/' $call | tr '|' '\n' | indent
echo "\$ memctl hook claude-code < $call"
before=$(date +%s%N)
answer=$("$memctl" hook claude-code < $call)
after=$(date +%s%N)
printf '%s\n' "$answer" | sed 's/.*"additionalContext":"//; s/"}}$//' |
    awk '{ gsub(/\\n/, "\n"); gsub(/\\"/, "\""); print }' | grep -v '^$' | indent
# Nanoseconds are no part of POSIX; elsewhere the time is left out.
case $before$after in
*[!0-9]*) ;;
*) step "The agent reads this beside its error, after $(((after - before) / 1000000)) ms, instead of searching." ;;
esac
