//! TLS with `rustls` and `ring`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::policy::Trusted;

/// TLS connector with the given trust. `is_direct` adds the ALPN protocol that servers require for
/// TLS without a previous request.
///
/// # Errors
///
/// The reason as text.
pub(super) fn connector(trusted: &Trusted, is_direct: bool) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = match trusted {
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
        Trusted::AnyCertificate => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny { provider }))
            .with_no_client_auth(),
    };
    if is_direct {
        config.alpn_protocols = vec![b"postgresql".to_vec()];
    }
    Ok(MakeRustlsConnect::new(config))
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
