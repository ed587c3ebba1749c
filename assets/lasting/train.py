#!/usr/bin/env python3
"""Trains the model that tells lasting corrections from remarks, and prints how good it is.

    cargo build --example lasting_features
    python3 assets/lasting/train.py --large DIR [--turns FILE] [--small FILE] [--write assets/lasting/weights.bin]

--large  directory with `corrections.jsonl`: objects with `text`, `kind`, `topic`, `generalisable`
--turns  more texts for training only: objects with `text`, `label`, `lasting`
--small  more texts for training only: objects with `text`, `generalisable`

`examples.jsonl` beside this file has invented texts about other work than programming, for training
only.

Needs numpy and scikit-learn. The figures are those of five folds of topics, over four random
divisions; texts of the other files are in the training half of every fold. Both thresholds are set
on the folds. The weights contain no text.
"""
import argparse, json, os, subprocess
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

BUCKETS, WORDS, CUES, REGULARISATION = 8192, 3.0, 0.3, 1.0
SURE, DOUBT = 0.90, 0.80  # precision on the folds above which a remark is refused, and asked about
INVENTED = 0.5  # weight of the invented texts

def lines(path): return [json.loads(line) for line in open(path) if line.strip()]
def key(text): return ' '.join(text.lower().split())[:80]

def features(texts, program):
    flat = '\n'.join(' '.join(text.split()) for text in texts) + '\n'
    out = subprocess.run([program], input=flat, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    words = np.zeros((len(rows), BUCKETS), np.float32)
    for at, row in enumerate(rows): words[at, row['buckets']] = 1 / np.sqrt(max(1, len(row['buckets'])))
    return words, np.array([row['cues'] for row in rows], np.float32)

def main():
    ap = argparse.ArgumentParser(); ap.add_argument('--large', required=True); ap.add_argument('--turns'); ap.add_argument('--small')
    ap.add_argument('--program', default='target/debug/examples/lasting_features'); ap.add_argument('--write')
    a = ap.parse_args()
    rows = lines(a.large + '/corrections.jsonl'); known = {key(r['text']) for r in rows}
    more = [(t['text'], not t['lasting'], t['label'] != 'injected') for t in (lines(a.turns) if a.turns else [])]
    more = [(text, no) for text, no, use in more if use and len(text) < 1000]
    more += [(t['text'], not t['generalisable']) for t in (lines(a.small) if a.small else [])]
    own = os.path.join(os.path.dirname(__file__), 'examples.jsonl')
    invented = [(t['text'], not t['generalisable']) for t in lines(own)]
    more = [(text, no) for text, no in more if key(text) not in known] + invented
    y = np.array([not r['generalisable'] for r in rows]); extra = np.array([no for _, no in more], bool)
    topics = np.array([r['topic'] or r['id'] for r in rows]); chat = np.array([r['kind'] == 'chat' for r in rows])
    words, cues = features([r['text'] for r in rows] + [text for text, _ in more], a.program)
    mean, spread = cues.mean(0), cues.std(0) + 1e-6
    X = np.hstack([words * WORDS, (cues - mean) / spread * CUES])
    truth = np.concatenate([y, extra])
    # Lasting demands in chats are few, and the ones that a refusal would hurt.
    weight = np.where(np.concatenate([chat, np.ones(len(more), bool)]) & ~truth, 2.0, 1.0)
    weight[len(weight) - len(invented):] *= INVENTED
    fit = lambda use: LogisticRegression(C=REGULARISATION, max_iter=3000).fit(X[use], truth[use], sample_weight=weight[use])
    others = np.arange(len(rows), len(truth))
    result, scores = [], []
    for seed in range(4):
        names = np.unique(topics); place = dict(zip(names, np.random.RandomState(seed).permutation(len(names))))
        fold = np.array([place[t] % 5 for t in topics]); score = np.zeros(len(rows))
        for f in range(5):
            test = np.where(fold == f)[0]
            score[test] = fit(np.concatenate([np.where(fold != f)[0], others])).decision_function(X[test])
        order = np.argsort(-score); right = np.cumsum(y[order]); precision = right / np.arange(1, len(y) + 1)
        recall = lambda p: max([right[i] / y.sum() for i in range(5, len(y)) if precision[i] >= p], default=0)
        cut = lambda p: min([score[order[i]] for i in range(5, len(y)) if precision[i] >= p], default=np.inf)
        scores.append(score)
        result.append([roc_auc_score(y, score), recall(.8), recall(.9), recall(.95), cut(SURE), cut(DOUBT)])
    mean_of = np.mean(result, 0)
    print(f'{len(rows)} texts, {y.sum()} no rule, {len(more)} more for training')
    print('folds of topics: AUC %.3f, recall at precision .80 %.2f, .90 %.2f, .95 %.2f' % tuple(mean_of[:4]))
    model = fit(np.arange(len(truth))); own_score = model.decision_function(X[:len(rows)])
    cuts = []
    for name, at in (('sure', 4), ('in doubt', 5)):
        cut = float(np.median([r[at] for r in result])); cuts.append(cut)
        said = [score > cut for score in scores]; own_said = own_score > cut
        print('%s above %.3f: precision %.3f, recall %.3f on the folds; %.3f, %.3f on what it was trained on' % (
            name, cut, np.mean([y[s].mean() for s in said]), np.mean([y[s].sum() / y.sum() for s in said]), y[own_said].mean(), y[own_said].sum() / y.sum()))
    if a.write:
        w = model.coef_[0]; cue = w[BUCKETS:] * CUES / spread
        all_ = np.concatenate([w[:BUCKETS] * WORDS, cue, [model.intercept_[0] - (cue * mean).sum()], cuts])
        all_.astype('<f4').tofile(a.write)

if __name__ == '__main__': main()
