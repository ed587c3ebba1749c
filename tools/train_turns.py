#!/usr/bin/env python3
"""Trains the detector of standing corrections in chats (src/learn/chat/model.json).

usage: train_turns.py DATA_DIR [--large CORRECTIONS_DIR] [--write] [--fixture] [--predict FILE]

DATA_DIR holds turns.jsonl: labelled user turns with their repository. CORRECTIONS_DIR holds
corrections.jsonl, of which the chat messages are used. The invented turns in train_turns.txt are
always used. The model is a logistic regression over the cues in cues.json, their pairs and the
lengths. The score of a turn is that of its best sentence; training finds the sentence of a
positive turn by itself. Figures are printed in-sample, and by folds of repositories.

The features are those of src/learn/chat/{own_words,features}.rs; a test compares the two by the
fixture that --fixture writes. No text of the data is written.
"""
import argparse, json, math, os, random, re

HERE = os.path.dirname(os.path.abspath(__file__))
CHAT = os.path.join(HERE, '..', 'src', 'learn', 'chat')
MOST_WORDS, LONGEST_SENTENCE, FOLDS = 300, 45, 10
LOWER = str.maketrans('ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')


def without_tags(text):
    """Removes `<name …>…</name>`; an unclosed tag stays."""
    at = 0
    while (at := text.find('<', at)) >= 0:
        name = re.match(r'<([A-Za-z][A-Za-z0-9_-]*)', text[at:], re.A)
        close = f'</{name.group(1)}>' if name else ''
        end = text.find(close, at) if name else -1
        if end < 0:
            at += 1
        else:
            text = text[:at] + '\n' + text[end + len(close):]
    return text


def own_words(text):
    fenced, lines = False, []
    for line in without_tags(text).split('\n'):
        start = line.lstrip()
        if start.startswith(('```', '~~~')):
            fenced = not fenced
        elif not fenced and not start.startswith(('>', '❯', '│', '|', '$ ', '[', '{', 'at ')):
            lines.append(line)
    return '\n'.join(lines).strip()


def sentences(own):
    found = []
    for line in own.split('\n'):
        line = line.strip().lstrip('-*•0123456789.) ')
        begin = 0
        for at, c in enumerate(line):
            ends = at + 1 == len(line) or (c in '.!?;' and line[at + 1] in ' \t')
            if ends:
                part = line[begin:at + 1].strip()
                begin = at + 1
                if 2 <= len(part.split()) <= LONGEST_SENTENCE:
                    found.append(part)
    return found


def is_english(text):
    return sum(ord(c) > 127 for c in text) * 5 <= len(text)


class Features:
    def __init__(self):
        with open(os.path.join(CHAT, 'cues.json'), encoding='utf8') as file:
            cues = json.load(file)
        self.cues = [(c['name'], re.compile(c['pattern'], re.A)) for c in cues['cues']]
        at = {name: i for i, (name, _) in enumerate(self.cues)}
        self.pairs = [(at[a], at[b]) for a, b in cues['pairs']]
        self.size = len(self.cues) + len(self.pairs) + 8

    def of(self, sentence, first, last, words):
        """Sparse features of one sentence in a turn with so many words."""
        t = sentence.translate(LOWER).replace('’', "'").replace('`', '').replace('*', '').replace('_', ' ')
        on = {i for i, (_, p) in enumerate(self.cues) if p.search(t)}
        row = [(i, 1.0) for i in sorted(on)]
        base = len(self.cues)
        row += [(base + k, 1.0) for k, (a, b) in enumerate(self.pairs) if a in on and b in on]
        base += len(self.pairs)
        n = len(sentence.split())
        row += [(base, math.log1p(n) / 3), (base + 1, float(n > 25)), (base + 2, float(first)),
                (base + 3, float(last)), (base + 4, math.log1p(words) / 5), (base + 5, float(words > 40)),
                (base + 6, float(words > 100)), (base + 7, 1.0)]
        return [(i, v) for i, v in row if v]

    def turn(self, text):
        """The features of each sentence of a turn; none for a turn that is not examined."""
        own = own_words(text)
        words = len(own.split())
        if words > MOST_WORDS or not is_english(own):
            return []
        parts = sentences(own)
        return [(s, self.of(s, i == 0, i + 1 == len(parts), words)) for i, s in enumerate(parts)]


def score(weights, row):
    return sum(weights[i] * v for i, v in row)


def solve(matrix, vector):
    """Solves a symmetric positive system by Cholesky."""
    n = len(vector)
    for j in range(n):
        row = matrix[j]
        d = math.sqrt(row[j] - sum(x * x for x in row[:j]))
        row[j] = d
        for i in range(j + 1, n):
            other = matrix[i]
            other[j] = (other[j] - sum(map(lambda a, b: a * b, other[:j], row[:j]))) / d
    out = list(vector)
    for i in range(n):
        out[i] = (out[i] - sum(matrix[i][k] * out[k] for k in range(i))) / matrix[i][i]
    for i in reversed(range(n)):
        out[i] = (out[i] - sum(matrix[k][i] * out[k] for k in range(i + 1, n))) / matrix[i][i]
    return out


def fit(rows, size, penalty, weights=None, steps=6):
    """Logistic regression by Newton's method. `rows`: (features, label, weight)."""
    weights = list(weights or [0.0] * size)
    for _ in range(steps):
        gradient = [penalty * w for w in weights]
        gradient[-1] = 0.0
        hessian = [[0.0] * size for _ in range(size)]
        for i in range(size):
            hessian[i][i] = penalty if i + 1 < size else 1e-6
        for row, label, weight in rows:
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, score(weights, row)))))
            error, curve = weight * (p - label), weight * p * (1 - p)
            for at, (i, v) in enumerate(row):
                gradient[i] += error * v
                line, scaled = hessian[i], curve * v
                for k, u in row[:at + 1]:
                    line[k] += scaled * u
        change = solve(hessian, gradient)
        weights = [w - c for w, c in zip(weights, change)]
        if max(map(abs, change)) < 1e-4:
            break
    return weights


def train(turns, extra, size, penalty, weight):
    """Trains on turns (sentences, label). In a positive turn only the best sentence counts."""
    negative = [(row, 0, 1.0) for parts, label in turns if not label for _, row in parts]
    positive = [[row for _, row in parts] for parts, label in turns if label and parts]
    weights = None
    for _ in range(3):
        chosen = [row for rows in positive for row in rows] if weights is None else \
            [max(rows, key=lambda row: score(weights, row)) for rows in positive]
        rows = extra + negative + [(row, 1, weight) for row in chosen]
        weights = fit(rows, size, penalty, weights)
    return weights


def best(weights, parts):
    return max((score(weights, row) for _, row in parts), default=-99.0)


def figures(name, scores, turns, natural, limit):
    total = sum(turns)
    said = [i for i, s in enumerate(scores) if s >= limit]
    right = sum(turns[i] for i in said)
    false = sum(natural[i] and not turns[i] for i in said)
    print(f'{name:34s} limit {limit:6.2f}  P {right / max(1, len(said)):.3f}  R {right / total:.3f}  '
          f'({right} right, {len(said) - right} wrong; natural {false} false in {sum(natural)})')


def limit_for(scores, turns, natural, enough):
    """Lowest limit at which the measure holds."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    found, right, false = 99.0, 0, 0
    for n, i in enumerate(order, 1):
        right += turns[i]
        false += natural[i] and not turns[i]
        if scores[i] > -90 and enough(right / n, false / sum(natural)):
            found = scores[i]
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('data')
    p.add_argument('--large')
    p.add_argument('--penalty', type=float, default=2.0)
    p.add_argument('--weight', type=float, default=3.0, help='weight of a positive turn')
    p.add_argument('--write', action='store_true')
    p.add_argument('--fixture', action='store_true')
    p.add_argument('--predict')
    p.add_argument('--limit', type=float, help='score from which a turn is reported')
    a = p.parse_args()
    features = Features()
    with open(os.path.join(HERE, 'train_turns.txt'), encoding='utf8') as file:
        lines = [line.rstrip('\n') for line in file]
    invented = [(line[2:], int(line[0] == '+')) for line in lines if line[:2] in ('+ ', '- ')]
    if a.large:
        with open(os.path.join(a.large, 'corrections.jsonl'), encoding='utf8') as file:
            chats = [json.loads(line) for line in file]
        chats = [(c['text'], int(c['generalisable'])) for c in chats if c['kind'] == 'chat']
    else:
        chats = []
    extra = []
    for text, label in invented + chats:
        parts = features.turn(text)
        extra += [(row, label, 0.5) for _, row in (parts if len(parts) == 1 or not label else parts[:1])]
    with open(os.path.join(a.data, 'turns.jsonl'), encoding='utf8') as file:
        data = [json.loads(line) for line in file]
    turns = [(features.turn(r['text']) if not r['text_cut'] else [], int(r['lasting'])) for r in data]
    labels = [label for _, label in turns]
    natural = [r['stratum'] == 'natural' for r in data]
    repos = sorted({r['source']['repo'] for r in data})
    random.Random(0).shuffle(repos)
    fold = {repo: i % FOLDS for i, repo in enumerate(repos)}
    of = [fold[r['source']['repo']] for r in data]
    out = [0.0] * len(data)
    for k in range(FOLDS):
        weights = train([t for t, f in zip(turns, of) if f != k], extra, features.size, a.penalty, a.weight)
        for i, (parts, _) in enumerate(turns):
            if of[i] == k:
                out[i] = best(weights, parts)
    weights = train(turns, extra, features.size, a.penalty, a.weight)
    inside = [best(weights, parts) for parts, _ in turns]
    alone = fit([(row, label, 1.0) for row, label, _ in extra], features.size, a.penalty)
    apart = [best(alone, parts) for parts, _ in turns]
    few = limit_for(out, labels, natural, lambda precision, false: false <= 0.01)
    for name, scores in (('folds of repositories', out), ('in-sample', inside), ('without the data', apart)):
        own = limit_for(scores, labels, natural, lambda precision, false: false <= 0.01)
        figures(f'{name}, 1 false in 100', scores, labels, natural, own)
        for at in (0.5, 0.6, 0.7):
            limit = limit_for(scores, labels, natural, lambda precision, false: precision >= at)
            figures(f'{name}, P {at}', scores, labels, natural, limit)
    limit = few if a.limit is None else a.limit
    figures('folds of repositories, chosen', out, labels, natural, limit)
    figures('in-sample, chosen', inside, labels, natural, limit)
    if a.predict:
        with open(a.predict, 'w', encoding='utf8') as file:
            for r, s in zip(data, out):
                file.write(json.dumps({'id': r['id'], 'lasting': s >= limit}) + '\n')
    path = os.path.join(CHAT, 'model.json')
    if a.write:
        with open(path, 'w', encoding='utf8') as file:
            numbers = ', '.join(f'{w:.4f}' for w in weights)
            file.write(f'{{"limit": {limit:.4f}, "weights": [{numbers}]}}\n')
    if a.fixture:
        with open(path, encoding='utf8') as file:
            weights = json.load(file)['weights']
        with open(os.path.join(CHAT, 'agreement.json'), 'w', encoding='utf8') as file:
            cases = [{'text': text, 'score': round(best(weights, features.turn(text)), 4)}
                     for text, _ in invented[::9] + FIXTURE]
            json.dump(cases, file, indent=1, ensure_ascii=False)
            file.write('\n')


# Invented turns with what the reader must leave out.
FIXTURE = [
    ('No, use `pnpm` here.\n```\nnever do this\n```\n- Don’t push!', 1),
    ('<system-reminder>always ask</system-reminder>fix it please; never commit', 0),
    ('> never push\n$ npm install\nwhat is this?', 0),
    ('这个不对。总是使用 pnpm', 0),
    ('a < b and <b>bold</b> text', 0),
    ('1. Always run the tests\n2. Never push', 1),
]

if __name__ == '__main__':
    main()
