//! Splits a shell line at its operators into commands and their words.
//!
//! Words are without quotes; their places in the line include them. Redirections are no words, and neither are
//! patterns of `case`, lists of arrays, and operators in `[[ … ]]` and `(( … ))`.

use std::ops::Range;

/// Words of the shell before a command.
pub const KEYWORDS: &[&str] = &[
    "then", "do", "else", "elif", "if", "while", "until", "!", "{",
];

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// Always: `;`, a new line.
    #[default]
    Any,
    /// Only after its success: `&&`.
    Success,
    /// Only after its failure: `||`.
    Failure,
    /// With its output as input: `|`.
    Pipe,
}

/// Word of a command.
#[derive(Debug, Clone, Default)]
pub struct Word {
    /// Text without quotes.
    pub text: String,
    /// Place in the line, in bytes.
    pub start: usize,
    /// End in the line, in bytes.
    pub end: usize,
}

/// Command as it is written.
#[derive(Debug, Clone, Default)]
pub struct Raw {
    /// Words without their quotes, and without redirections.
    pub words: Vec<Word>,
    /// End in the line, with redirections and without operators.
    pub end: usize,
    /// How it follows the command before it.
    pub join: Join,
    /// Files behind `>`, `>>` and `&>`.
    pub targets: Vec<String>,
    /// Lines within: `$(…)`, backticks, `<(…)`.
    pub inner: Vec<String>,
    /// The next command reads its output.
    pub is_piped: bool,
    /// Text of its here-document or here-string.
    pub input: String,
    /// End of its here-document in the line; 0 if there is none.
    pub input_end: usize,
}

/// Role of the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    #[default]
    Word,
    Target,
    /// Text of a here-string.
    Input,
    /// A file that is read, or a stream.
    Skipped,
}

/// Here-document that begins at the next line.
struct Awaited {
    end: String,
    /// `true` if substitutions in it are executed.
    is_expanded: bool,
    /// Number of its command.
    of: usize,
}

#[derive(Default)]
struct Scanner<'l> {
    line: &'l str,
    at: usize,
    all: Vec<Raw>,
    now: Raw,
    word: Option<Word>,
    next: Next,
    awaited: Vec<Awaited>,
    /// Number of `case` that have not ended.
    cases: usize,
    /// `true` at a pattern of `case`.
    is_pattern: bool,
    /// `true` within `[[ … ]]`.
    is_test: bool,
}

/// Returns the commands of a line, in order.
pub fn scan(line: &str) -> Vec<Raw> {
    let mut scanner = Scanner::of(line);
    scanner.run();
    scanner
        .all
        .retain(|raw| !raw.words.is_empty() || !raw.inner.is_empty());
    scanner.all
}

/// Returns `true` for `NAME=…`, `NAME+=…` and `NAME[…]=…`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Returns the lines that are executed in a text that is no line itself.
fn substitutions(text: &str) -> Vec<String> {
    let mut scanner = Scanner::of(text);
    scanner.expanded(0, None);
    scanner.now.inner
}

impl<'l> Scanner<'l> {
    fn of(line: &'l str) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    fn run(&mut self) {
        while let Some(c) = self.peek() {
            if std::mem::take(&mut self.is_pattern) {
                self.pattern();
                continue;
            }
            let start = self.at;
            self.at += c.len_utf8();
            match c {
                '\\' => match self.bump() {
                    Some('\n') | None => {}
                    Some(escaped) => self.word(start).push(escaped),
                },
                '\'' => {
                    let inside = self.until('\'');
                    let text = &self.line[inside];
                    self.word(start).push_str(text);
                }
                '"' => self.expanded(start, Some('"')),
                '`' => self.backticks(start),
                '$' if self.rest().starts_with('(') => self.substitution(start),
                '$' if self.rest().starts_with('\'') => self.escaped(start),
                '$' if self.rest().starts_with('"') => {}
                '#' if self.word.is_none() => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += length;
                }
                '<' | '>' | '&' | '|' | ';' | '(' | ')' if self.is_test => self.end_word(start),
                '(' if self.is_list() => {
                    self.at = start;
                    let inside = self.parentheses(start, start);
                    self.now.inner.extend(substitutions(&self.line[inside]));
                }
                '(' if self.word.is_none() && self.rest().starts_with('(') => {
                    self.arithmetic(start);
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
                    let join = match (c, is_double) {
                        ('&', true) => Join::Success,
                        ('|', true) => Join::Failure,
                        ('|', false) => Join::Pipe,
                        _ => Join::Any,
                    };
                    self.end_command(start, join);
                }
                ';' if self.cases > 0 && self.rest().starts_with([';', '&']) => {
                    self.bump();
                    self.end_command(start, Join::Any);
                    self.is_pattern = true;
                }
                '\n' => {
                    self.end_word(start);
                    self.now.end = start;
                    self.here_documents();
                    self.end_command(start, Join::Any);
                }
                ';' | '(' | ')' => self.end_command(start, Join::Any),
                c if c.is_whitespace() => self.end_word(start),
                c => self.word(start).push(c),
            }
        }
        self.end_command(self.line.len(), Join::Any);
    }

    fn rest(&self) -> &'l str {
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

    fn skip_blanks(&mut self) {
        self.at = self.line.len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn word(&mut self, start: usize) -> &mut String {
        let (text, end) = (String::new(), start);
        &mut self.word.get_or_insert(Word { text, start, end }).text
    }

    fn end_word(&mut self, end: usize) {
        let Some(mut word) = self.word.take() else {
            return;
        };
        word.end = end;
        self.now.end = end;
        match std::mem::replace(&mut self.next, Next::Word) {
            Next::Word => self.push_word(word),
            Next::Target => self.now.targets.push(word.text),
            Next::Input => self.now.input = word.text,
            Next::Skipped => {}
        }
    }

    fn push_word(&mut self, word: Word) {
        let before = &self.now.words;
        let is_keyword = |word: &Word| KEYWORDS.contains(&word.text.as_str());
        let starts = before.iter().take_while(|word| is_keyword(word)).count();
        let head = &before[starts..];
        match word.text.as_str() {
            "[[" if head.is_empty() => self.is_test = true,
            "]]" => self.is_test = false,
            "in" if head.len() == 2 && head[0].text == "case" => {
                self.cases += 1;
                self.is_pattern = true;
            }
            "esac" if head.is_empty() => self.cases = self.cases.saturating_sub(1),
            _ => {}
        }
        self.now.words.push(word);
    }

    /// Returns `true` at the list of an array: `NAME=(`.
    fn is_list(&self) -> bool {
        let text = self.word.as_ref().map_or("", |word| &word.text);
        text.ends_with('=') && is_assignment(text)
    }

    /// Steps over `((…))`. Without its end these are two subshells.
    fn arithmetic(&mut self, start: usize) {
        let inside = self.parentheses(start, start);
        if self.rest().starts_with(')') {
            self.bump();
            self.now.inner.extend(substitutions(&self.line[inside]));
        } else {
            self.word = None;
            self.at = start + 1;
            self.end_command(start, Join::Any);
        }
    }

    /// Steps over a pattern of `case` and its `)`.
    fn pattern(&mut self) {
        self.end_command(self.at, Join::Any);
        let rest = self.rest();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        if trimmed.starts_with("esac") {
            return;
        }
        if trimmed.starts_with('(') {
            self.bump();
        }
        let mut depth = 0_usize;
        while let Some(c) = self.bump() {
            match c {
                '\\' => drop(self.bump()),
                '\'' | '"' => drop(self.until(c)),
                '(' => depth += 1,
                ')' if depth == 0 => return,
                ')' => depth -= 1,
                _ => {}
            }
        }
    }

    fn end_command(&mut self, end: usize, join: Join) {
        self.end_word(end);
        self.next = Next::Word;
        self.is_test = false;
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

    /// Reads text in which only substitutions act, up to a character or to its end.
    fn expanded(&mut self, start: usize, end: Option<char>) {
        self.word(start);
        while let Some(c) = self.bump() {
            match c {
                c if Some(c) == end => return,
                '\\' => match self.bump() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.word(start).push(c),
                    Some('\n') | None => {}
                    Some(c) => {
                        self.word(start).push('\\');
                        self.word(start).push(c);
                    }
                },
                '`' => self.backticks(start),
                '$' if self.rest().starts_with('(') => self.substitution(start),
                c => self.word(start).push(c),
            }
        }
    }

    /// Reads `$(…)` after the `$`.
    fn substitution(&mut self, start: usize) {
        let inside = self.parentheses(self.at - 1, start);
        let text = &self.line[inside];
        match text.strip_prefix('(') {
            Some(arithmetic) => self.now.inner.extend(substitutions(arithmetic)),
            None => self.now.inner.push(text.to_owned()),
        }
    }

    /// Reads `$'…'` after the `$`.
    fn escaped(&mut self, start: usize) {
        self.bump();
        self.word(start);
        while let Some(c) = self.bump() {
            match c {
                '\'' => return,
                '\\' => {
                    let c = match self.bump() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('x') => self.number(16, 2),
                        Some('u') => self.number(16, 4),
                        Some('U') => self.number(16, 8),
                        Some('0'..='7') => {
                            self.at -= 1;
                            self.number(8, 3)
                        }
                        Some(c) => c,
                        None => return,
                    };
                    self.word(start).push(c);
                }
                c => self.word(start).push(c),
            }
        }
    }

    /// Reads the number of a character with at most so many digits.
    fn number(&mut self, radix: u32, most: usize) -> char {
        let digits = self.rest().chars().take(most);
        let length = digits.take_while(|c| c.is_digit(radix)).count();
        let number = u32::from_str_radix(&self.rest()[..length], radix);
        self.at += length;
        let c = number.ok().and_then(char::from_u32);
        c.unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn backticks(&mut self, start: usize) {
        let inside = self.until('`');
        let text = &self.line[inside];
        self.word(start).extend(["`", text, "`"]);
        self.now.inner.push(text.to_owned());
    }

    /// Reads `(…)` into the word that began at `start`, with the text from `before` on; returns
    /// the place inside.
    fn parentheses(&mut self, before: usize, start: usize) -> Range<usize> {
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
        let text = &self.line[before..self.at];
        self.word(start).push_str(text);
        inside..stop
    }

    fn redirection(&mut self, c: char, start: usize) {
        // `2>` and `{fd}>` begin with a stream.
        let is_stream = |word: &Word| {
            let is_number = word.text.bytes().all(|b| b.is_ascii_digit());
            is_number || word.text.starts_with('{') && word.text.ends_with('}')
        };
        if self.word.as_ref().is_some_and(is_stream) {
            self.word = None;
        }
        self.end_word(start);
        if self.rest().starts_with('(') {
            let inside = self.parentheses(self.at - 1, start);
            self.now.inner.push(self.line[inside].to_owned());
            return;
        }
        if c == '<' && self.rest().starts_with("<<") {
            self.at += 2;
            self.next = Next::Input;
            self.skip_blanks();
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
        self.skip_blanks();
    }

    fn here_document_begins(&mut self) {
        if self.rest().starts_with('-') {
            self.bump();
        }
        self.skip_blanks();
        let rest = self.rest();
        let length = match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => rest[1..].find(quote).map(|length| length + 2),
            _ => rest.find(|c: char| c.is_whitespace() || ";|&()<>".contains(c)),
        };
        let name = &rest[..length.unwrap_or(rest.len())];
        let end = name.replace(['\'', '"', '\\'], "");
        self.at += name.len();
        self.now.end = self.at;
        if !end.is_empty() {
            self.awaited.push(Awaited {
                is_expanded: end == name,
                end,
                of: self.all.len(),
            });
        }
    }

    /// Reads the here-documents that begin at this line.
    fn here_documents(&mut self) {
        for awaited in std::mem::take(&mut self.awaited) {
            let mut body = String::new();
            while !self.rest().is_empty() {
                let line = self.until('\n');
                let line = &self.line[line];
                if line.trim() == awaited.end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let raw = self.all.get_mut(awaited.of).unwrap_or(&mut self.now);
            if awaited.is_expanded {
                raw.inner.extend(substitutions(&body));
            }
            raw.input = body;
            raw.input_end = self.at;
        }
    }
}
