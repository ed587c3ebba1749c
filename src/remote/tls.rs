//! TLS by `rustls` with `ring`, as everywhere else in this program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Trusted;

/// What secures a connection, and whether it came to that.
pub(super) struct Security {
    pub(super) connector: MakeRustlsConnect,
    pub(super) used: Arc<AtomicBool>,
}

/// Makes a connector that trusts these.
///
/// # Errors
///
/// Why there is none, in words.
pub(super) fn security(trusted: &Trusted) -> Result<Security, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let used = Arc::new(AtomicBool::new(false));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match trusted {
        Trusted::System => builder
            .with_platform_verifier()
            .map_err(|error| error.to_string())?
            .with_no_client_auth(),
        Trusted::File(path) => {
            let unreadable = |reason: String| format!("`{}`: {reason}", path.display());
            let mut roots = RootCertStore::empty();
            let certificates =
                CertificateDer::pem_file_iter(path).map_err(|e| unreadable(e.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|e| unreadable(e.to_string()))?;
                roots
                    .add(certificate)
                    .map_err(|e| unreadable(e.to_string()))?;
            }
            if roots.is_empty() {
                return Err(unreadable("it holds no certificate".to_owned()));
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trusted::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody {
                provider,
                used: Arc::clone(&used),
            }))
            .with_no_client_auth(),
    };
    if *trusted != Trusted::Anybody {
        // Such a connection is a secure one or none.
        used.store(true, Ordering::Relaxed);
    }
    let connector = MakeRustlsConnect::new(config);
    Ok(Security { connector, used })
}

/// Takes every certificate, as `sslmode=require` says, and still demands that the other side holds
/// its key. Where the login is by SCRAM, its binding to the channel keeps others from standing between.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
    used: Arc<AtomicBool>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.used.store(true, Ordering::Relaxed);
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
