//! Login guard: inspects the server's messages before the driver answers them.
//!
//! The driver answers every authentication request, even with a password in clear text or as MD5.
//! So each message passes through the guard until the login is complete. A request that the policy
//! does not allow ends the session, and the password is not sent.
//!
//! Invariants: the driver receives no byte of a message before the guard has checked the whole
//! message. The length of a message and the hashing work that a server may request are limited.

use super::address::Methods;

/// Maximum length of a message before the login, in bytes. Real messages have a few hundred.
const LONGEST: usize = 64 << 10;
/// Maximum number of SCRAM iterations. 4,096 are usual; a million take about a second.
const MOST_ROUNDS: u64 = 1_000_000;

/// Reason why a login was aborted before any part of the password was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The server asks for the password in clear text.
    #[error("asks for the password in clear text; it was not sent")]
    ClearText,
    /// The server asks for an MD5 hash of the password.
    #[error(
        "asks for the password as an MD5 hash, which can replace the password; it was not sent"
    )]
    Md5,
    /// The server offers SCRAM without channel binding.
    #[error(
        "does not bind the login to the encrypted channel, so an attacker may relay it; nothing was sent"
    )]
    Unbound,
    /// The server asks for no authentication, so it does not authenticate itself.
    #[error("asks for no password, and so has not proven that it is the right server")]
    Unproven,
    /// The server asks for SCRAM, which `require_auth` does not allow.
    #[error("asks for a SCRAM login, which `require_auth` does not allow")]
    Scram,
    /// The server asks for an unsupported method.
    #[error("asks for an unsupported login method")]
    Unknown,
    /// The server asks for too many hash iterations.
    #[error("asks for too many hash iterations")]
    Rounds,
    /// The bytes are not valid PostgreSQL messages.
    #[error("does not follow the PostgreSQL protocol")]
    Garbled,
}

/// Buffer and state of the server's messages during the login.
#[derive(Debug)]
pub(super) struct LoginGuard {
    methods: Methods,
    must_bind: bool,
    /// `true` once the server has asked for an allowed authentication.
    has_asked: bool,
    is_over: bool,
    bytes: Vec<u8>,
    /// Number of bytes passed to the driver.
    taken: usize,
    /// Number of bytes that passed the check.
    sound: usize,
}

impl LoginGuard {
    /// Guard that allows `methods`. With `must_bind`, SCRAM needs channel binding.
    pub(super) fn new(methods: Methods, must_bind: bool) -> Self {
        Self {
            methods,
            must_bind,
            has_asked: false,
            is_over: false,
            bytes: Vec::new(),
            taken: 0,
            sound: 0,
        }
    }

    /// Returns `true` once the login is complete and the buffer is empty.
    pub(super) fn is_over(&self) -> bool {
        self.is_over && self.taken == self.bytes.len()
    }

    /// Checked bytes for the driver, at most `most`.
    pub(super) fn take_checked(&mut self, most: usize) -> &[u8] {
        let end = self.sound.min(self.taken.saturating_add(most));
        let start = std::mem::replace(&mut self.taken, end);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Adds bytes from the server and checks all complete messages.
    ///
    /// # Errors
    ///
    /// The reason to end the session.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.bytes.drain(..self.taken);
        self.sound -= self.taken;
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
        while !self.is_over {
            let Some(header) = self
                .bytes
                .get(self.sound..)
                .and_then(<[u8]>::first_chunk::<5>)
            else {
                return Ok(());
            };
            let [tag, length @ ..] = *header;
            let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            if !(4..=LONGEST).contains(&length) {
                return Err(Refusal::Garbled);
            }
            let end = self.sound + 1 + length;
            let Some(body) = self.bytes.get(self.sound + 5..end) else {
                return Ok(());
            };
            if tag == b'R' {
                let body = body.to_vec();
                self.judge(&body)?;
            }
            self.sound = end;
        }
        self.sound = self.bytes.len();
        Ok(())
    }

    /// Checks an authentication request against the policy.
    fn judge(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let Some((code, rest)) = body.split_first_chunk::<4>() else {
            return Err(Refusal::Garbled);
        };
        let methods = self.methods;
        let allowed = |is_allowed, refusal| if is_allowed { Ok(()) } else { Err(refusal) };
        match u32::from_be_bytes(*code) {
            0 => {
                let is_open = methods.none && !self.must_bind;
                allowed(self.has_asked || is_open, Refusal::Unproven)?;
                self.is_over = true;
            }
            3 => allowed(methods.clear_text, Refusal::ClearText)?,
            5 => allowed(methods.md5, Refusal::Md5)?,
            10 => {
                allowed(methods.scram, Refusal::Scram)?;
                let mut offered = rest.split(|byte| *byte == 0);
                let is_bound = offered.any(|name| name == b"SCRAM-SHA-256-PLUS");
                allowed(is_bound || !self.must_bind, Refusal::Unbound)?;
            }
            11 => allowed(rounds(rest) <= MOST_ROUNDS, Refusal::Rounds)?,
            12 => {}
            _ => return Err(Refusal::Unknown),
        }
        self.has_asked = true;
        Ok(())
    }
}

/// Iteration count in a server's first SCRAM message: `r=…,s=…,i=4096`.
fn rounds(message: &[u8]) -> u64 {
    let mut parts = message.split(|byte| *byte == b',');
    let asked = parts.find_map(|part| part.strip_prefix(b"i="));
    let digits = asked.and_then(|digits| std::str::from_utf8(digits).ok());
    // The driver rejects a value that is not a number.
    digits.map_or(0, |digits| match digits.parse() {
        Ok(rounds) => rounds,
        Err(_) if digits.len() > 9 => u64::MAX,
        Err(_) => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(code: u32, rest: &[u8]) -> Vec<u8> {
        let length = u32::try_from(8 + rest.len()).unwrap();
        let parts = [b"R", &length.to_be_bytes()[..], &code.to_be_bytes(), rest];
        parts.concat()
    }

    const SCRAM: Methods = Methods {
        scram: true,
        md5: false,
        clear_text: false,
        none: false,
    };
    const BOTH: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
    const UNBOUND: &[u8] = b"SCRAM-SHA-256\0\0";

    #[test]
    fn questions_that_give_the_password_away_never_reach_the_driver() {
        let check = |methods, must_bind, asked: &[u8], expected: Result<(), Refusal>| {
            // As a whole, and byte by byte.
            for step in [asked.len(), 1] {
                let mut guard = LoginGuard::new(methods, must_bind);
                let mut came = asked.chunks(step).map(|bytes| guard.receive(bytes));
                let found = came.find(Result::is_err).unwrap_or(Ok(()));
                assert_eq!(found, expected, "{asked:?}");
                let handed = guard.take_checked(usize::MAX).len();
                let whole = if expected.is_ok() { asked.len() } else { 0 };
                assert_eq!(handed, whole, "{asked:?}");
            }
        };
        check(SCRAM, true, &message(3, b""), Err(Refusal::ClearText));
        check(SCRAM, false, &message(3, b""), Err(Refusal::ClearText));
        check(SCRAM, false, &message(5, b"salt"), Err(Refusal::Md5));
        check(SCRAM, true, &message(10, UNBOUND), Err(Refusal::Unbound));
        check(SCRAM, true, &message(10, BOTH), Ok(()));
        check(SCRAM, false, &message(10, UNBOUND), Ok(()));
        check(SCRAM, false, &message(0, b""), Err(Refusal::Unproven));
        check(SCRAM, false, &message(7, b""), Err(Refusal::Unknown));
        check(SCRAM, false, b"R\0\0\0\x06\0\0", Err(Refusal::Garbled));
        check(
            SCRAM,
            false,
            b"HTTP/1.1 400 Bad Request",
            Err(Refusal::Garbled),
        );
        let open = Methods {
            none: true,
            ..SCRAM
        };
        check(open, false, &message(0, b""), Ok(()));
        check(open, true, &message(0, b""), Err(Refusal::Unproven));
        let md5 = Methods { md5: true, ..SCRAM };
        check(md5, false, &message(5, b"salt"), Ok(()));
        let clear_text = Methods {
            clear_text: true,
            ..Methods::default()
        };
        check(clear_text, false, &message(3, b""), Ok(()));
        check(clear_text, false, &message(10, BOTH), Err(Refusal::Scram));
    }

    #[test]
    fn a_server_cannot_ask_for_endless_work() {
        let asked = |message: &[u8]| rounds(message);
        assert_eq!(asked(b"r=abc,s=def,i=4096"), 4096);
        assert_eq!(asked(b"r=abc,s=def,i=99999999999999999999999"), u64::MAX);
        assert_eq!(asked(b"r=abc"), 0);
        let mut guard = LoginGuard::new(SCRAM, false);
        guard.receive(&message(10, UNBOUND)).unwrap();
        let many = message(11, b"r=a,s=b,i=4000000000");
        assert_eq!(guard.receive(&many), Err(Refusal::Rounds));
    }

    #[test]
    fn all_that_follows_the_login_goes_through() {
        let mut guard = LoginGuard::new(SCRAM, true);
        let mut all = message(10, BOTH);
        all.extend(message(0, b""));
        all.extend(b"anything");
        guard.receive(&all).unwrap();
        assert!(!guard.is_over());
        assert_eq!(guard.take_checked(3), &all[..3]);
        assert_eq!(guard.take_checked(usize::MAX), &all[3..]);
        assert!(guard.is_over());
    }
}
