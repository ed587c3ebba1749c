#!/bin/sh
# The main job on real input: run a skill, correct it, and see the next run obey.
# Works on a copy, so that the repository stays as it is. Needs no key and no network.
set -eu
memctl=$1
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$here/skills" "$here/fixtures" "$here/.agentura" "$work"
cd "$work"
# Only what the skill's own examples and corrections know may answer.
unset ANTHROPIC_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY DATABASE_URL AGENTURA_KNOWLEDGE_DIR AGENTURA_SKILLS_DIR
export MEMCTL_MODEL=offline NO_COLOR=1 HOME="$work"

step() { printf '\n# %s\n' "$1"; }
show() { printf '$ memctl'; for word; do case $word in *\ *) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac; done; echo; "$memctl" "$@"; }

correction="When screening for senior backend roles, system design experience should be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60."

step "Run a skill. Offline, its nearest known case answers; the score is too high."
show run hr/resume-screen --input fixtures/sample_input.json 2>&1 | grep -E '^\$|overall_score|recommendation|answered by|^rules'

step "Say once what was wrong. The correction is stored, and a rule and a guardrail come out."
show correct hr/resume-screen --execution-id latest --correction "$correction" --expected fixtures/expected_output.json |
    grep -E '^\$|^(correction|rule|confidence|guardrail)' | cut -c 1-150

step "The rule stands in the prompt of every later run, between the domain and the skill."
show memory prompt hr/resume-screen | grep -E '^\$|Learned Rules|REFL-|Applies when' | cut -c 1-150

step "Run the skill again: the same input, the corrected result."
show run hr/resume-screen --input fixtures/sample_input.json 2>&1 | grep -E '^\$|overall_score|recommendation|answered by|^rules'

step "Sessions that coding agents have left behind teach too: failures that were overcome."
show learn fixtures/sessions | grep -E '^\$|sessions|Error|git|learnt' | cut -c 1-150

step "The next agent that meets one of them, elsewhere, is told what worked. With hooks, at the failing call."
show hint --error "fatal: unable to auto-detect email address (got 'ci@build.(none)')" --command "git commit -m release" | cut -c 1-150

step "Everything that was ever learnt is found by its words, and counted."
show memory search "compliance check" | cut -c 1-150
show memory status | grep -v "$work"
