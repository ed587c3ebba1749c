//! Reasons for which a token is refused.

/// Reason why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no token.
    #[error("a bearer token is missing")]
    Missing,
    /// The token is malformed, has a wrong signature, or an unsupported algorithm.
    #[error("the token is not valid")]
    Invalid,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// The token is for another audience.
    #[error("the token is for another audience")]
    Audience,
    /// The token has no user.
    #[error("the token has no user in `sub`")]
    NoSubject,
    /// The token permits nothing.
    #[error("the token has no domain in `domain_scope`")]
    NoScope,
    /// The keys are not available.
    #[error("cannot fetch the keys that verify tokens")]
    NoKeys,
}
