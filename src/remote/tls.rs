//! Stream of one session: a socket, or TLS over it with `rustls` and `ring`, behind a login guard; and the binding
//! of a login to its channel.
//!
//! The driver gets it as an established TLS stream. Otherwise the driver would negotiate TLS
//! itself, and the guard could not inspect the messages of an unencrypted connection.
//!
//! The driver answers every authentication request, even with a password in clear text or as MD5.
//! So each message passes through the guard until the login is complete. A request that the policy
//! does not allow ends the session, and the password is not sent.
//!
//! Invariants: the driver receives no byte of a message before the guard has checked the whole
//! message. The length of a message and the hashing work that a server may request are limited.
//!
//! Deliberately absent: a reader of certificates. `rustls` verifies them; here only the name of the signature's
//! algorithm is looked up.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::address::Methods;
use crate::remote::address::Trusted;

/// TLS connector with the given trust.
///
/// # Errors
///
/// The reason as text.
pub(super) fn connector(trusted: &Trusted) -> Result<TlsConnector, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match trusted {
        Trusted::System => builder
            .with_platform_verifier()
            .map_err(|error| error.to_string())?
            .with_no_client_auth(),
        Trusted::File(path) => {
            let unreadable = |reason: &dyn Display| format!("`{}`: {reason}", path.display());
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| unreadable(&e))? {
                let certificate = certificate.map_err(|e| unreadable(&e))?;
                roots.add(certificate).map_err(|e| unreadable(&e))?;
            }
            if roots.is_empty() {
                return Err(unreadable(&"it holds no certificate"));
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trusted::AnyCertificate => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny { provider }))
            .with_no_client_auth(),
    };
    Ok(Arc::new(config).into())
}

/// Verifier that accepts every certificate, as `sslmode=require` defines, but checks that the
/// server holds its private key. The login is bound to the channel, which prevents a man in the
/// middle.
#[derive(Debug)]
struct AcceptAny {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Returns the hash of a server's certificate that binds a login to its channel, `tls-server-end-point` of RFC 5929;
/// `None` for algorithms without a hash of their own, such as Ed25519, and for what is no certificate.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (certificate_fields, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(certificate_fields, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (name, _) = element(algorithm, OBJECT_ID)?;
    match (name.strip_prefix(RSA), name.strip_prefix(ECDSA)) {
        // SHA-256 replaces SHA-1.
        (Some([5 | 11]), _) | (_, Some([1] | [3, 2])) => Some(Sha256::digest(certificate).to_vec()),
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const OBJECT_ID: u8 = 0x06;
/// The algorithms of RSA, 1.2.840.113549.1.1, and ECDSA, 1.2.840.10045.4, in DER.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// Splits the first element of DER off, if it has this tag: its content, and what follows.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[first, length], rest) = bytes.split_first_chunk()?;
    if first != tag {
        return None;
    }
    let (length, rest) = if length < 0x80 {
        (usize::from(length), rest)
    } else {
        let (length, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
        let more = |sum: usize, byte: &u8| Some(sum.checked_mul(256)? + usize::from(*byte));
        (length.iter().try_fold(0, more)?, rest)
    };
    rest.split_at_checked(length)
}

/// Connection to a server: TCP, a local socket, or TLS.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// Socket with a login guard, which inspects messages until the login is complete.
pub(super) struct Guarded {
    pub(super) socket: Box<dyn Socket>,
    /// Hash that binds a login to the channel; `None` without TLS.
    pub(super) end_point: Option<Vec<u8>>,
    pub(super) guard: LoginGuard,
}

impl AsyncRead for Guarded {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { socket, guard, .. } = self.get_mut();
        loop {
            if guard.is_over() {
                return Pin::new(socket).poll_read(context, buffer);
            }
            let sound = guard.take_checked(buffer.remaining());
            if !sound.is_empty() {
                buffer.put_slice(sound);
                return Poll::Ready(Ok(()));
            }
            let mut bytes = [0; 4096];
            let mut read = ReadBuf::new(&mut bytes);
            std::task::ready!(Pin::new(&mut *socket).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            guard.receive(read.filled()).map_err(io::Error::other)?;
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

impl TlsStream for Guarded {
    fn channel_binding(&self) -> ChannelBinding {
        let end_point = self.end_point.clone();
        end_point.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Completed handshake: the driver receives the stream with TLS already established.
pub(super) struct Established;

impl TlsConnect<Guarded> for Established {
    type Stream = Guarded;
    type Error = Infallible;
    type Future = Ready<Result<Guarded, Infallible>>;

    fn connect(self, stream: Guarded) -> Self::Future {
        ready(Ok(stream))
    }
}

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

    /// An element of DER with a length in three bytes, as certificates have.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82], &length[..], content].concat()
    }

    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let name = [
            &[OBJECT_ID, u8::try_from(algorithm.len()).unwrap()],
            algorithm,
        ]
        .concat();
        let fields = [
            der(SEQUENCE, &[7; 300]),
            der(SEQUENCE, &name),
            vec![3, 1, 0],
        ]
        .concat();
        der(SEQUENCE, &fields)
    }

    #[test]
    fn a_login_is_bound_by_the_hash_of_the_signature() {
        let check = |family: &[u8], algorithm: &[u8], bytes: Option<usize>| {
            let certificate = certificate(&[family, algorithm].concat());
            let bound = end_point(&certificate);
            assert_eq!(bound.as_ref().map(Vec::len), bytes, "{algorithm:?}");
            if bytes == Some(32) {
                assert_eq!(bound, Some(Sha256::digest(&certificate).to_vec()));
            }
        };
        check(RSA, &[5], Some(32));
        check(RSA, &[11], Some(32));
        check(RSA, &[12], Some(48));
        check(RSA, &[13], Some(64));
        check(RSA, &[10], None);
        check(ECDSA, &[1], Some(32));
        check(ECDSA, &[3, 2], Some(32));
        check(ECDSA, &[3, 3], Some(48));
        check(ECDSA, &[3, 4], Some(64));
        check(&[0x2b, 0x65, 0x70], &[], None);
    }

    #[test]
    fn invalid_certificate_binds_nothing() {
        let whole = certificate(&[RSA, &[11]].concat());
        for end in 0..whole.len() {
            assert_eq!(end_point(&whole[..end]), None, "{end}");
        }
        assert_eq!(
            end_point(&[
                SEQUENCE, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
            ]),
            None
        );
        assert_eq!(end_point(&[0x31, 0]), None);
    }
}

#[cfg(test)]
mod tests_of_login_guard {
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
