//! Login over a connection without TLS: SCRAM or nothing.
//!
//! The driver answers every authentication request, also with the password in clear text or as an MD5 hash, and
//! its own safeguard, channel binding, needs TLS. So the first message of the server is looked at before the
//! driver has it whole: it alone decides which login follows.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Length of a message's head: its tag, its length, and the code of an authentication request.
const HEAD: usize = 9;

/// Reader of a server's messages that ends at a first one which asks for the password.
pub(super) struct ScramOnly<R> {
    reader: R,
    /// The server may let us in without proof that it knows the password.
    may_ask_nothing: bool,
    head: Vec<u8>,
}

impl<R> ScramOnly<R> {
    pub(super) fn new(reader: R, may_ask_nothing: bool) -> Self {
        Self {
            reader,
            may_ask_nothing,
            head: Vec::with_capacity(HEAD),
        }
    }

    fn check(&mut self, came: &[u8]) -> Result<(), Refusal> {
        let missing = HEAD - self.head.len();
        self.head.extend(came.iter().take(missing));
        match self.head.as_slice() {
            [b'R', _, _, _, _, code @ ..] => match code {
                [0, 0, 0, 0] if !self.may_ask_nothing => Err(Refusal::Unproven),
                [0, 0, 0, 3 | 5] => Err(Refusal::PasswordAsked),
                _ => Ok(()),
            },
            // An error, or too few bytes to tell.
            [] | [b'R' | b'E', ..] => Ok(()),
            _ => Err(Refusal::Garbled),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ScramOnly<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, buffer))?;
        let came = buffer.filled().get(before..).unwrap_or_default();
        Poll::Ready(self.check(came).map_err(io::Error::other))
    }
}

/// Reason why a login was ended before anything of the password was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// A hash by MD5 can replace the password.
    #[error("asks for the password in clear text or as an MD5 hash; it was not sent")]
    PasswordAsked,
    #[error("asks for no password, and so has not proven that it is the right server")]
    Unproven,
    #[error("does not follow the PostgreSQL protocol")]
    Garbled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_gets_no_request_for_the_password() {
        let check = |may_ask_nothing, message: &[u8], expected: Result<(), Refusal>| {
            // As a whole, and byte by byte.
            for step in [message.len(), 1] {
                let mut login = ScramOnly::new((), may_ask_nothing);
                let found = message.chunks(step).try_for_each(|came| login.check(came));
                assert_eq!(found, expected, "{message:?}");
            }
        };
        let asked = Err(Refusal::PasswordAsked);
        check(false, b"R\0\0\0\x08\0\0\0\x03", asked);
        check(true, b"R\0\0\0\x0c\0\0\0\x05salt", asked);
        check(false, b"R\0\0\0\x08\0\0\0\0", Err(Refusal::Unproven));
        check(true, b"R\0\0\0\x08\0\0\0\0", Ok(()));
        check(false, b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0", Ok(()));
        check(false, b"E\0\0\0\x08S\0\0\0", Ok(()));
        // A notice would hide what follows it.
        check(
            false,
            b"N\0\0\0\x05\0R\0\0\0\x08\0\0\0\x03",
            Err(Refusal::Garbled),
        );
        check(false, b"HTTP/1.1 400 Bad Request", Err(Refusal::Garbled));
    }
}
