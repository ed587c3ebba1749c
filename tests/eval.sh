#!/bin/sh
# Measures the search on sets of documents and queries, and prints a Markdown table.
#
#   tests/eval.sh MEMCTL SET[:FIELD] …
#
# SET is a directory with `docs.jsonl` and `queries.jsonl` as `memctl eval retrieval` reads them; FIELD
# is the field of a document that is searched, `text` unless named. Each cell is recall@5 / nDCG@10.
set -eu
memctl=$1
shift
echo "| set | words | meaning | ranks (k = 50) | default |"
echo "|---|---|---|---|---|"
for set in "$@"; do
	dir=${set%%:*}
	field=text
	case $set in *:*) field=${set#*:} ;; esac
	row="| $(basename "$dir")$([ "$field" = text ] || echo ", \`$field\`")"
	for fusion in keyword semantic rrf default; do
		cell=$("$memctl" eval retrieval --docs "$dir/docs.jsonl" --queries "$dir/queries.jsonl" \
			--doc-field "$field" --fusion "$fusion" --json --quiet |
			python3 -c 'import json, sys
metrics = json.load(sys.stdin)["metrics"]
print("%.3f / %.3f" % (metrics["recall@5"], metrics["ndcg@10"]))')
		row="$row | $cell"
	done
	echo "$row |"
done
