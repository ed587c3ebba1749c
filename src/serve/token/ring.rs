//! Signatures of tokens with `ring`, which the program already uses for TLS.
//!
//! HMAC with SHA-256 for a shared secret; RSA (PKCS #1, SHA-256) and ECDSA (P-256) for public keys.
//! All other algorithms are refused; the library does not even know the name `none`.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::{hmac, signature};

/// Installs these algorithms in the library; only the first call has an effect.
pub(super) fn install() {
    static PROVIDER: CryptoProvider = CryptoProvider {
        signer_factory: signer,
        verifier_factory: verifier,
        // No key is derived from another key here.
        key_utils: KeyUtils::new_unimplemented(),
    };
    // An error only means that it is installed already.
    let _ = PROVIDER.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it like this")]
fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(Box::new(Shared(hmac::Key::new(
            hmac::HMAC_SHA256,
            key.as_bytes(),
        )))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it like this")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            let secret = key.try_get_as_bytes()?;
            Ok(Box::new(Shared(hmac::Key::new(hmac::HMAC_SHA256, secret))))
        }
        (Algorithm::RS256, AlgorithmFamily::Rsa) | (Algorithm::ES256, AlgorithmFamily::Ec) => {
            Ok(Box::new(Public(key.clone(), *algorithm)))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

/// Shared secret.
struct Shared(hmac::Key);

impl Signer<Vec<u8>> for Shared {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Shared {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        hmac::verify(&self.0, message, signature).map_err(|_| Error::new())
    }
}

impl JwtSigner for Shared {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Shared {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

/// Public key.
struct Public(DecodingKey, Algorithm);

impl Verifier<Vec<u8>> for Public {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match self.0.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                // Some issuers pad the numbers with leading zeros, which `ring` rejects.
                let n = trimmed(n);
                let e = trimmed(e);
                let key = signature::RsaPublicKeyComponents { n, e };
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            DecodingKeyKind::SecretOrDer(point) => {
                let key =
                    signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
                key.verify(message, signature)
            }
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Public {
    fn algorithm(&self) -> Algorithm {
        self.1
    }
}

fn trimmed(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
