//! Why a sender is not believed. The word goes into log lines and metrics, the sentence to the sender; neither says
//! anything of the token or the secret.

/// Why a delivery is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no bearer token.
    TokenMissing,
    /// There is more than one `Authorization`.
    TokenRepeated,
    /// It is not a token in the compact form.
    TokenMalformed,
    /// It is signed in a way that the route does not take.
    Algorithm,
    /// Its header brings a key along, or asks for what is not understood.
    HeaderMember,
    /// The issuer has no such key.
    KeyUnknown,
    /// The issuer's keys cannot be had.
    KeysUnavailable,
    /// The signature is not there.
    SignatureMissing,
    /// The signature is not of the sender's form.
    SignatureMalformed,
    /// The signature is not the issuer's or sender's.
    Signature,
    /// The signature was not taken away by Cloud Run, so Cloud Run did not check it.
    NotCheckedByCloudRun,
    /// Cloud Run checked the token of `X-Serverless-Authorization` instead of this one.
    TokenReplaced,
    /// A claim is missing, or is not what it must be.
    Claim,
    /// It is of another issuer.
    Issuer,
    /// It is for somebody else.
    Audience,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// The issuer does not vouch for the e-mail address.
    EmailUnverified,
    /// It is another account's.
    Email,
    /// It was signed too long ago, or in the future.
    Timestamp,
}

// === impl Refusal ===

impl Refusal {
    /// The word for it in log lines and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::TokenMissing => "token_missing",
            Self::TokenRepeated => "token_repeated",
            Self::TokenMalformed => "token_malformed",
            Self::Algorithm => "algorithm",
            Self::HeaderMember => "header_member",
            Self::KeyUnknown => "key_unknown",
            Self::KeysUnavailable => "keys_unavailable",
            Self::SignatureMissing => "signature_missing",
            Self::SignatureMalformed => "signature_malformed",
            Self::Signature => "signature",
            Self::NotCheckedByCloudRun => "not_checked_by_cloud_run",
            Self::TokenReplaced => "token_replaced",
            Self::Claim => "claim",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::EmailUnverified => "email_unverified",
            Self::Email => "email",
            Self::Timestamp => "timestamp",
        }
    }

    /// What is wrong, and who can do something about it.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::TokenMissing => {
                "there is no `Authorization: Bearer` with a token: a client sends its own, a task or subscription names a \
                 service account"
            }
            Self::TokenRepeated => "there is more than one Authorization: send one",
            Self::TokenMalformed => "the bearer token is not a signed JSON web token",
            Self::Algorithm => "the token is signed in a way that this route does not take",
            Self::HeaderMember => {
                "the token's header brings a key or asks for an extension, and neither is taken from a token"
            }
            Self::KeyUnknown => "the issuer has no key with the token's key id",
            Self::KeysUnavailable => "the issuer's keys cannot be fetched at the moment",
            Self::SignatureMissing => "the delivery is not signed",
            Self::SignatureMalformed => "the signature does not have the sender's form",
            Self::Signature => "the signature is wrong, or made with another secret or key",
            Self::NotCheckedByCloudRun => {
                "the token still has its signature, so Cloud Run has not checked it: require IAM on this service"
            }
            Self::TokenReplaced => {
                "there is an X-Serverless-Authorization, and Cloud Run checks that in place of Authorization: send the \
                 token in Authorization alone"
            }
            Self::Claim => {
                "the token lacks a claim that is needed (iss, aud, exp, iat; email where accounts are listed), or has one \
                 of another type, as a list in aud"
            }
            Self::Issuer => "the token is of another issuer",
            Self::Audience => {
                "the token is for another audience: compare the sender's with the route's, letter by letter"
            }
            Self::Expired => "the token has expired",
            Self::NotYetValid => "the token is not valid yet: compare the clocks",
            Self::EmailUnverified => "the issuer does not vouch for the token's e-mail address",
            Self::Email => "the token's account is not one that may deliver here",
            Self::Timestamp => {
                "the signature is too old, or from the future: compare the clocks, or sign again"
            }
        }
    }
}
