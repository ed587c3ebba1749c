#!/bin/sh
# Measures the search on sets of documents and queries, and prints a Markdown table.
#
#   tests/eval.sh MEMCTL SET …
#
# SET is a directory with `docs.jsonl` and `queries.jsonl` as `memctl eval retrieval` reads them. Each cell
# is recall@5 / nDCG@10.
set -eu
memctl=$1
shift
echo "| set | words | meaning | ranks (k = 50) | default |"
echo "|---|---|---|---|---|"
for dir in "$@"; do
	row="| $(basename "$dir")"
	for fusion in keyword semantic rrf default; do
		cell=$("$memctl" eval retrieval --docs "$dir/docs.jsonl" --queries "$dir/queries.jsonl" \
			--fusion "$fusion" --json --quiet |
			python3 -c 'import json, sys
metrics = json.load(sys.stdin)["metrics"]
print("%.3f / %.3f" % (metrics["recall@5"], metrics["ndcg@10"]))')
		row="$row | $cell"
	done
	echo "$row |"
done
