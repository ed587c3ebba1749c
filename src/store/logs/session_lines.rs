//! Removal of a session's lines from the execution log, and their restoration by undo.
//!
//! Byte offsets are stable, because the log otherwise only grows. They restore lines to their old
//! positions.

use crate::store::files::directory::EXECUTION_LOGS as FILE;
use crate::store::files::log;
use crate::store::logs::execution_logs::read;
use crate::store::{Error, PlacedLine, Step, Writer, atomic};

impl Writer {
    /// Removes the lines of a session, given its names; all other lines keep their bytes. Returns
    /// the number of removed lines. With `for_good`, the undo journal does not keep them.
    pub fn remove_execution_logs(
        &mut self,
        id: &str,
        sessions: &[String],
        for_good: bool,
    ) -> Result<usize, Error> {
        let viewer = self.store().viewer().clone();
        let is_gone = |line: &[u8]| {
            let line = read(line).filter(|line| viewer.sees(line.user_id.as_deref()));
            let session = line.and_then(|line| line.session_id);
            session.is_some_and(|session| sessions.contains(&session))
        };
        self.remove_lines(id, &is_gone, for_good)
    }

    /// Removes restored lines, at any position.
    pub fn take_out_lines(&mut self, id: &str, lines: &[PlacedLine]) -> Result<usize, Error> {
        let is_gone = |line: &[u8]| lines.iter().any(|known| known.is(line));
        self.remove_lines(id, &is_gone, false)
    }

    fn remove_lines(
        &mut self,
        id: &str,
        is_gone: &dyn Fn(&[u8]) -> bool,
        for_good: bool,
    ) -> Result<usize, Error> {
        let gone = self.placed(is_gone)?;
        if !for_good {
            self.note_lines(id, false, &gone);
        }
        if !gone.is_empty() {
            log::retain(self.lock(), FILE, &|line| {
                !gone.iter().any(|one| one.is(line))
            })?;
        }
        Ok(gone.len())
    }

    /// Restores lines at their old positions, or after the lines there now. Skips lines that
    /// already exist.
    pub fn put_lines_back(&mut self, id: &str, lines: &[PlacedLine]) -> Result<usize, Error> {
        let there = self.placed(&|line| lines.iter().any(|known| known.is(line)))?;
        let is_missing = |line: &&PlacedLine| !there.iter().any(|other| other.text == line.text);
        let missing: Vec<PlacedLine> = lines.iter().filter(is_missing).cloned().collect();
        if missing.is_empty() || !self.store().scope().allows(None) {
            return Ok(0);
        }
        self.note_lines(id, true, &missing);
        let old = log::whole(self.lock().directory(), FILE)?;
        let mut new = Vec::with_capacity(old.len());
        let mut back = missing.iter().peekable();
        for line in old.split_inclusive(|b| *b == b'\n') {
            while let Some(next) = back.next_if(|next| next.at <= new.len() as u64) {
                new.extend([next.text.as_bytes(), b"\n"].concat());
            }
            new.extend_from_slice(line);
        }
        for line in back {
            new.extend([line.text.as_bytes(), b"\n"].concat());
        }
        atomic::replace(self.lock().directory(), FILE, &new)?;
        Ok(missing.len())
    }

    fn note_lines(&mut self, id: &str, came: bool, lines: &[PlacedLine]) {
        if !lines.is_empty() {
            self.journal(Step::Lines {
                id: id.to_owned(),
                came,
                lines: lines.to_vec(),
            });
        }
    }

    /// Returns the matching lines with their offsets; none if the scope excludes logs.
    fn placed(&self, is_wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<PlacedLine>, Error> {
        let mut found = Vec::new();
        if !self.store().scope().allows(None) {
            return Ok(found);
        }
        let mut at = 0;
        for line in log::whole(self.store().directory(), FILE)?.split_inclusive(|b| *b == b'\n') {
            if let Some(text) = std::str::from_utf8(line).ok().filter(|_| is_wanted(line)) {
                let text = text.trim_end_matches('\n').to_owned();
                found.push(PlacedLine { at, text });
            }
            at += line.len() as u64;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::Scoped;
    use memctl_files::named;

    #[test]
    fn a_session_takes_its_lines_with_it_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let path = dir.path().join(FILE);
        let of = |session: &str| {
            format!("{{\"session_id\": \"{session}\",  \"action_type\":\"decision\"}}\n")
        };
        let others = format!("{}[]\n\n{{\"torn", of("b"));
        let text = format!("{}{}{others}", of("a"), of("host/a"));
        named::replace(&path, text.as_bytes()).unwrap();
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        let mut remove = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            writer
                .remove_execution_logs("SESS-1", &names, true)
                .unwrap()
        };
        assert_eq!((remove(&["c"]), remove(&["a", "host/a"])), (0, 2));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), others);
    }
}
