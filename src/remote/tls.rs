//! Protection of a login, as the driver takes it: TLS with `rustls` and `ring`, the binding of a login to its
//! channel, and without TLS, SCRAM or nothing.
//!
//! The driver answers every authentication request, also with the password in clear text or as an MD5 hash, and
//! its own safeguard, channel binding, needs TLS. So on a plain connection the first message of the server is
//! looked at before the driver has it whole: it alone decides which login follows.
//!
//! Deliberately absent: a reader of certificates. `rustls` verifies them; here only the name of the signature's
//! algorithm is looked up.

use std::fmt::Display;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

use crate::remote::address::Trusted;
use crate::remote::error::Refusal;

/// Connection to a server: TCP, or a local socket.
pub(super) type Socket = Box<dyn Stream>;

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Handshake with the server of this name, and who may have signed its certificate.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// # Errors
    ///
    /// The reason as text.
    pub(super) fn new(trusted: &Trusted, host: String) -> Result<Self, String> {
        Ok(Self {
            connector: connector(trusted)?,
            name: ServerName::try_from(host).map_err(|error| error.to_string())?,
        })
    }
}

impl TlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, socket).await?;
            Ok(Encrypted(stream))
        })
    }
}

/// Stream to a server after the handshake.
pub(super) struct Encrypted(client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates();
        let certificate = certificates.and_then(<[_]>::first);
        certificate
            .and_then(|certificate| end_point(certificate))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// TLS connector with the given trust, or the reason why there is none.
fn connector(trusted: &Trusted) -> Result<TlsConnector, String> {
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
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
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
mod tests_of_plain {
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
