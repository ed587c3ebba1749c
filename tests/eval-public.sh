#!/bin/sh
# Measures retrieval with the metrics of the public benchmarks, and prints a Markdown table.
#
#   tests/eval-public.sh MEMCTL DIR
#
# DIR holds sets as `tools/public_sets.py` makes them. Each cell is hit@1 / hit@5 / all@5 / MRR: a relevant
# document at the first rank, one among the first five, all of them among the first five, and the mean
# reciprocal rank. `hit@k` is what LongMemEval calls recall_any@k, `all@k` its recall_all@k.
set -eu
memctl=$1
dir=$2
echo "| set | questions | words (BM25) | meaning | default |"
echo "|---|---|---|---|---|"
for set in "$dir"/*/; do
	row="| $(basename "$set")"
	for fusion in keyword semantic default; do
		cell=$("$memctl" eval retrieval --docs "$set/docs.jsonl" --queries "$set/queries.jsonl" \
			--fusion "$fusion" --json --quiet |
			python3 -c 'import json, sys
report = json.load(sys.stdin)
names = ["hit@1", "hit@5", "all@5", "mrr@10"]
print(report["queries"], "|", " / ".join("%.3f" % report["metrics"][name] for name in names))')
		case $fusion in keyword) row="$row | $cell" ;; *) row="$row | ${cell#*| }" ;; esac
	done
	echo "$row |"
done
