//! Splits a shell line at its operators into commands and their words.
//!
//! Quotes are taken off the words, and kept in the places of the line. Redirections are no words.

use std::ops::Range;

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Join {
    /// Always: `;`, a new line.
    #[default]
    Any,
    /// Only after its success: `&&`.
    Success,
}

/// Word of a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    /// Text without quotes.
    pub(crate) text: String,
    /// Place in the line, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Command as it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Raw {
    pub(crate) words: Vec<Word>,
    /// End in the line, with redirections and without operators.
    pub(crate) end: usize,
    pub(crate) join: Join,
    /// Files behind `>`, `>>` and `&>`.
    pub(crate) targets: Vec<String>,
    /// Lines within: `$(…)`, backticks, `<(…)`.
    pub(crate) inner: Vec<String>,
    /// Text of its here-document.
    pub(crate) body: String,
}

/// Role of the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Word,
    Target,
    /// A file that is read, a stream, or the end of a here-document.
    Skipped,
}

struct Scanner<'l> {
    line: &'l str,
    at: usize,
    all: Vec<Raw>,
    now: Raw,
    word: Option<Word>,
    next: Next,
    /// Ends of here-documents that begin at the next line, with their commands.
    awaited: Vec<(String, usize)>,
}

/// Returns the commands of a line, in order.
pub(crate) fn scan(line: &str) -> Vec<Raw> {
    let mut scanner = Scanner {
        line,
        at: 0,
        all: Vec::new(),
        now: Raw::default(),
        word: None,
        next: Next::Word,
        awaited: Vec::new(),
    };
    scanner.run();
    scanner
        .all
        .retain(|raw| !raw.words.is_empty() || !raw.inner.is_empty());
    scanner.all
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(c) = self.peek() {
            let start = self.at;
            self.at += c.len_utf8();
            match c {
                '\\' => match self.bump() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped, start),
                },
                '\'' => {
                    let inside = self.until('\'');
                    let text = self.line[inside].to_owned();
                    self.push_text(&text, start);
                }
                '"' => self.quoted(start),
                '`' => self.backticks(start),
                '$' if self.rest().starts_with('(') => {
                    let inside = self.parentheses(start);
                    // `$((…))` is arithmetic.
                    let text = self.line[inside].to_owned();
                    if !text.starts_with('(') {
                        self.now.inner.push(text);
                    }
                }
                '#' if self.word.is_none() => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += length;
                }
                '<' | '>' => self.redirection(c, start),
                '&' if self.rest().starts_with('>') => {
                    self.bump();
                    self.redirection('>', start);
                }
                '&' | '|' => {
                    let is_double = self.rest().starts_with(c);
                    let is_both = c == '|' && self.rest().starts_with('&');
                    if is_double || is_both {
                        self.bump();
                    }
                    let join = if c == '&' && is_double {
                        Join::Success
                    } else {
                        Join::Any
                    };
                    self.end_command(start, join);
                }
                '\n' => {
                    self.end_word(start);
                    self.now.end = start;
                    self.here_documents();
                    self.end_command(start, Join::Any);
                }
                ';' | '(' | ')' => self.end_command(start, Join::Any),
                c if c.is_whitespace() => self.end_word(start),
                c => self.push(c, start),
            }
        }
        self.end_command(self.line.len(), Join::Any);
    }

    fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn word(&mut self, start: usize) -> &mut String {
        let word = self.word.get_or_insert_with(|| Word {
            start,
            ..Word::default()
        });
        &mut word.text
    }

    fn push(&mut self, c: char, start: usize) {
        self.word(start).push(c);
    }

    fn push_text(&mut self, text: &str, start: usize) {
        self.word(start).push_str(text);
    }

    fn end_word(&mut self, end: usize) {
        let Some(mut word) = self.word.take() else {
            return;
        };
        word.end = end;
        self.now.end = end;
        match std::mem::replace(&mut self.next, Next::Word) {
            Next::Word => self.now.words.push(word),
            Next::Target => self.now.targets.push(word.text),
            Next::Skipped => {}
        }
    }

    fn end_command(&mut self, end: usize, join: Join) {
        self.end_word(end);
        self.next = Next::Word;
        let next = Raw {
            join,
            ..Raw::default()
        };
        let done = std::mem::replace(&mut self.now, next);
        // A command of nothing, as before `(`, does not break the chain.
        if done.words.is_empty() && done.inner.is_empty() && done.join == Join::Success {
            self.now.join = Join::Success;
        }
        self.all.push(done);
    }

    /// Returns the place up to a character, and steps over it.
    fn until(&mut self, end: char) -> Range<usize> {
        let start = self.at;
        let length = self.rest().find(end);
        let stop = start + length.unwrap_or(self.rest().len());
        self.at = (stop + end.len_utf8()).min(self.line.len());
        start..stop
    }

    fn quoted(&mut self, start: usize) {
        self.word(start);
        while let Some(c) = self.bump() {
            match c {
                '"' => return,
                '\\' => match self.bump() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.push(c, start),
                    Some('\n') | None => {}
                    Some(c) => {
                        self.push('\\', start);
                        self.push(c, start);
                    }
                },
                '`' => self.backticks(start),
                '$' if self.rest().starts_with('(') => {
                    let inside = self.parentheses(start);
                    let text = self.line[inside].to_owned();
                    if !text.starts_with('(') {
                        self.now.inner.push(text);
                    }
                }
                c => self.push(c, start),
            }
        }
    }

    fn backticks(&mut self, start: usize) {
        let inside = self.until('`');
        let text = self.line[inside].to_owned();
        self.push_text(&format!("`{text}`"), start);
        self.now.inner.push(text);
    }

    /// Reads `(…)` after the character before it; returns the place inside.
    fn parentheses(&mut self, start: usize) -> Range<usize> {
        let before = self.at - 1;
        self.bump();
        let inside = self.at;
        let mut depth = 1_usize;
        let mut stop = self.line.len();
        while let Some(c) = self.bump() {
            match c {
                '\\' => drop(self.bump()),
                '\'' => drop(self.until('\'')),
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 0 {
                        stop = self.at - 1;
                        break;
                    }
                }
                _ => {}
            }
        }
        let text = self.line[before..self.at].to_owned();
        self.push_text(&text, start);
        inside..stop
    }

    fn redirection(&mut self, c: char, start: usize) {
        // `2>` begins with the number of a stream.
        let is_number = |word: &Word| word.text.bytes().all(|b| b.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word(start);
        if self.rest().starts_with('(') {
            let inside = self.parentheses(start);
            let text = self.line[inside].to_owned();
            self.now.inner.push(text);
            return;
        }
        if c == '<' && self.rest().starts_with("<<") {
            self.at += 2;
            self.next = Next::Skipped;
            return;
        }
        if c == '<' && self.rest().starts_with('<') {
            self.at += 1;
            self.here_document_begins();
            return;
        }
        while matches!(self.peek(), Some('>' | '|')) {
            self.bump();
        }
        self.next = if c == '>' {
            Next::Target
        } else {
            Next::Skipped
        };
        if self.rest().starts_with('&') {
            self.bump();
            let is_stream = |c: char| c.is_ascii_digit() || c == '-';
            if self.peek().is_some_and(is_stream) {
                self.next = Next::Skipped;
            }
        }
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.bump();
        }
    }

    fn here_document_begins(&mut self) {
        if self.rest().starts_with('-') {
            self.bump();
        }
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.bump();
        }
        let is_name = |c: char| !c.is_whitespace() && !";|&()<>".contains(c);
        let length = self.rest().find(|c| !is_name(c));
        let name = &self.rest()[..length.unwrap_or(self.rest().len())];
        let end = name.replace(['\'', '"', '\\'], "");
        self.at += name.len();
        self.now.end = self.at;
        if !end.is_empty() {
            self.awaited.push((end, self.all.len()));
        }
    }

    /// Reads the here-documents that begin at this line.
    fn here_documents(&mut self) {
        for (end, of) in std::mem::take(&mut self.awaited) {
            let mut body = String::new();
            while !self.rest().is_empty() {
                let line = self.until('\n');
                let line = &self.line[line];
                if line.trim() == end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            match self.all.get_mut(of) {
                Some(raw) => raw.body = body,
                None => self.now.body = body,
            }
        }
    }
}
