#!/usr/bin/env python3
"""Makes a picture of the output of the program.

`tests/demo.sh memctl lesson | python3 docs/images/record.py > docs/images/lesson.svg`, and the same of
`correction`. A test (`cargo test demo`) compares the pictures.
"""
import sys
from html import escape

LINE, CHAR, PAD = 18, 7.8, 16
COLOURS = {"#": "#7d8590", "$": "#7ee787", "+": "#7ee787", "-": "#ff7b72"}

lines = [line.rstrip("\n")[:100] for line in sys.stdin]
lines = lines[next((i for i, line in enumerate(lines) if line.startswith("#")), 0):]
width, height = int(100 * CHAR) + 2 * PAD, len(lines) * LINE + 2 * PAD
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">')
print(f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>')
print('<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13" xml:space="preserve">')
for i, line in enumerate(lines):
    colour = COLOURS.get(line[:1], "#e6edf3")
    print(f'<text x="{PAD}" y="{PAD + (i + 0.75) * LINE:.0f}" fill="{colour}">{escape(line)}</text>')
print("</g>\n</svg>")
