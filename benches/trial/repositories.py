"""Repositories with quirks that no model can know, and two sibling sets of jobs in each.

`make(name, directory)` writes one and returns its jobs: {"first": text, "second": text}. Every quirk can be found out in the
repository itself, by reading or by trying; no error says its remedy in full.
"""
import os, subprocess

FILES, JOBS = {}, {}

FILES['observatory'] = {
    'README.md': '''# observatory
Frames of a small telescope. `./obs` calibrates frames and publishes notes, `checks/` holds the checks of the catalogue,
`make report` writes the report of the night. Teh site is in the north.
''',
    'obs': '''#!/usr/bin/env python3
import argparse, os, pathlib, re, sys
def stop(code, text): print('obs: ' + text, file=sys.stderr); sys.exit(code)
p = argparse.ArgumentParser(prog='obs'); s = p.add_subparsers(dest='verb', required=True)
c = s.add_parser('calibrate'); c.add_argument('frame'); c.add_argument('--darks', default='2023a'); c.add_argument('--out')
n = s.add_parser('publish'); n.add_argument('note')
q = s.add_parser('dome'); q.add_argument('state', choices=['open', 'park', 'status'])
a = p.parse_args(); dome = pathlib.Path('.state/dome')
if a.verb == 'dome':
    if a.state != 'status': dome.parent.mkdir(exist_ok=True); dome.write_text(a.state)
    print('dome:', dome.read_text() if dome.exists() else 'unknown'); sys.exit(0)
if a.verb == 'calibrate':
    head = pathlib.Path(a.frame).read_text().split('\\n')[0]
    if a.darks != re.search(r'sensor=(\\S+)', head).group(1).replace('kaf', '2024'): stop(41, f'E41 dark library {a.darks} does not fit the sensor')
    if not a.out or not a.out.startswith('reduced/'): stop(5, 'E05 destination refused')
    pathlib.Path('reduced').mkdir(exist_ok=True); pathlib.Path(a.out).write_text('reduced'); print(f'{a.out}: mean {sum(map(ord, head)) % 997}')
if a.verb == 'publish':
    if not dome.exists() or dome.read_text() != 'park': stop(9, 'E09 interlock')
    text = pathlib.Path(a.note).read_text()
    if not re.search(r'(?m)^observer: [A-Z]{2}$', text): stop(12, 'E12 note header incomplete')
    print('published', a.note)
''',
    'checks/run': '''#!/bin/sh
# Checks of the catalogue, one file each.
[ "$OBS_EPOCH" = J2000 ] || { echo "checks: coordinates: frame of reference undefined" >&2; exit 2; }
[ -n "$1" ] && [ -f "checks/$1.check" ] || { echo "checks: nothing to do" >&2; exit 2; }
echo "$1: $(wc -l < checks/$1.check) rows, 0 bad"
''',
    'checks/messier.check': 'm31 10.68 41.27\nm33 23.46 30.66\nm42 83.82 -5.39\n',
    'checks/caldwell.check': 'c14 35.0 57.1\nc33 312.9 31.7\n',
    'frames/m31.raw': 'sensor=kafb exp=30 gain=2\n0101\n', 'frames/m42.raw': 'sensor=kafb exp=10 gain=1\n0110\n',
    'notes/night-07.md': '# Night 7\nClear until two.\n', 'notes/night-08.md': '# Night 8\nThin clouds.\n',
    'Makefile': '''report: ; @test "$(NIGHT)" || { echo "report: no night" >&2; exit 2; }; test -f .state/ephemeris || { echo "report: ephemeris: stale or missing" >&2; exit 3; }; echo "report of $(NIGHT): digest $$(printf %s "$(NIGHT)" | cksum | cut -d' ' -f1)"
ephemeris: ; @mkdir -p .state && touch .state/ephemeris && echo "ephemeris written"
''',
    'docs/operations.md': '''# Frames
The dark library follows the sensor: kafb has 2024b. Results go below `reduced/`.
# Notes
A note is published with the dome parked (`./obs dome park`), and names its observer: a line `observer: XX`, two letters.
# Checks
Coordinates are of the epoch J2000 (`OBS_EPOCH`). A check is named without its ending.
# Report
The ephemeris comes first (`make ephemeris`), then `make report NIGHT=night-07`.
''',
    '.githooks/commit-msg': '#!/bin/sh\ngrep -q "^Night: [0-9][0-9]*$" "$1" || { echo "commit refused by policy" >&2; exit 1; }\n',
}
JOBS['observatory'] = {
    'first': 'Five jobs in this repository: (1) calibrate frames/m31.raw with ./obs and tell the mean it prints; (2) run the check `messier` of checks/ and tell how many rows it has; (3) publish notes/night-07.md with ./obs (Kim Lund observed); (4) make the report of night-07 and tell its digest; (5) correct the typo "Teh" in README.md and commit it with git.',
    'second': 'Five jobs in this repository: (1) calibrate frames/m42.raw with ./obs and tell the mean it prints; (2) run the check `caldwell` of checks/ and tell how many rows it has; (3) publish notes/night-08.md with ./obs (Kim Lund observed); (4) make the report of night-08 and tell its digest; (5) correct the typo "Teh" in README.md and commit it with git.',
}

FILES['gazette'] = {
    'README.md': '''# gazette
A newspaper of a village. `bin/gazette` renders and proofs issues and takes in letters, `ci/verify` verifies a desk.
Printed evry Friday.
''',
    'bin/gazette': '''#!/usr/bin/env python3
import argparse, os, pathlib, sys
def stop(code, text): print('gazette: ' + text, file=sys.stderr); sys.exit(code)
p = argparse.ArgumentParser(prog='gazette'); p.add_argument('--desk'); s = p.add_subparsers(dest='verb', required=True)
r = s.add_parser('render'); r.add_argument('issue'); r.add_argument('--sheet', default='a3')
t = s.add_parser('take'); t.add_argument('file'); t.add_argument('--order', default='date,name,text')
f = s.add_parser('proof'); f.add_argument('issue')
u = s.add_parser('unlock')
a = p.parse_args(); lock = pathlib.Path('.press/lock')
if a.verb == 'unlock': lock.exists() and lock.unlink(); print('press is free'); sys.exit(0)
if a.desk != 'local': stop(7, 'desk not authorised')
if a.verb == 'render':
    if not pathlib.Path(f'issues/{a.issue}.txt').exists(): stop(2, f'issue {a.issue} unknown')
    if a.sheet != 'berliner': stop(3, 'imposition failed: 14 of 16 pages placed')
    pathlib.Path('.press').mkdir(exist_ok=True); pathlib.Path(f'.press/{a.issue}.pdf').write_text('pdf'); lock.write_text(a.issue); print(f'{a.issue}: 16 pages, sum {sum(map(ord, a.issue)) % 1009}')
if a.verb == 'take':
    rows = [x.split('|') for x in pathlib.Path(a.file).read_text().strip().split('\\n')]
    if a.order != 'name,date,text': stop(4, "row 1: 'Ann' is no date")
    print(f'took {len(rows)} letters')
if a.verb == 'proof':
    if lock.exists(): stop(6, 'press is busy')
    if not pathlib.Path(f'.press/{a.issue}.pdf').exists(): stop(2, 'nothing to proof')
    print(f'{a.issue}: proof {len(a.issue) * 37} words')
''',
    'ci/verify': '''#!/usr/bin/env python3
import os, pathlib, sys
if os.environ.get('TZ') != 'Europe/Oslo': print('verify: 3 assertions failed: dates differ', file=sys.stderr); sys.exit(1)
name = sys.argv[1] if len(sys.argv) > 1 else ''
desk = pathlib.Path('desks') / (name + '.desk')
if not desk.exists(): print('verify: usage', file=sys.stderr); sys.exit(2)
print(f'{name}: {len(desk.read_text().split())} assertions passed')
''',
    'desks/sport.desk': 'a b c d e\n', 'desks/farm.desk': 'a b c\n',
    'issues/12-spring.txt': 'Spring\n', 'issues/13-flood.txt': 'Flood\n',
    'letters/march.txt': 'Ann|2026-03-01|Hello\nBo|2026-03-02|Thanks\n', 'letters/april.txt': 'Cy|2026-04-01|No\nDi|2026-04-03|Yes\nEd|2026-04-05|So\n',
    'docs/press.md': '''# Desk
Every command but `unlock` names its desk: `bin/gazette --desk local …`.
# Sheet
The machine prints on `berliner`. After a render the press is locked until `bin/gazette unlock`.
# Letters
The office writes name, date, text.
# Verification
Dates are those of Europe/Oslo.
# Commits
`desk(<name>): text`, for example `desk(sport): new table`.
''',
    '.githooks/commit-msg': "#!/bin/sh\ngrep -Eq '^desk\\([a-z]+\\): [a-z]' \"$1\" || { echo 'message does not pass the sub-editor' >&2; exit 1; }\n",
}
JOBS['gazette'] = {
    'first': 'Five jobs in this repository: (1) render the issue 12-spring with bin/gazette and tell the sum it prints; (2) take in letters/march.txt with bin/gazette and tell how many letters it took; (3) proof the issue 12-spring and tell how many words; (4) verify the desk `sport` with ci/verify and tell how many assertions passed; (5) correct the typo "evry" in README.md and commit it with git.',
    'second': 'Five jobs in this repository: (1) render the issue 13-flood with bin/gazette and tell the sum it prints; (2) take in letters/april.txt with bin/gazette and tell how many letters it took; (3) proof the issue 13-flood and tell how many words; (4) verify the desk `farm` with ci/verify and tell how many assertions passed; (5) correct the typo "evry" in README.md and commit it with git.',
}


def make(name, directory):
    for path, text in FILES[name].items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if text.startswith('#!'):
            file.chmod(0o755)
    (directory / '.gitignore').write_text('.state/\n.press/\nreduced/\n.agentura/\n.trial/\nsh\n')
    git = lambda *arguments: subprocess.run(['git', *arguments], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    git('init', '-q', '.')
    git('config', 'user.email', 'dev@trial.example')
    git('config', 'user.name', 'dev')
    git('add', '-A')
    first = {'observatory': 'First light\n\nNight: 1', 'gazette': 'desk(all): first issue'}[name]
    git('commit', '-q', '-m', first)
    git('config', 'core.hooksPath', '.githooks')
    return JOBS[name]
