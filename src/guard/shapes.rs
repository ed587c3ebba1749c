//! The shapes of keys that vendors give out: a prefix that nothing else has, and what follows it.
//!
//! A shape is data. How a text is searched for all of them at once is `scan`; how a body is read
//! that a line break stands in is `body`. Prefixes are facts that vendors publish so that keys can
//! be found; lengths are lower bounds where a vendor has changed them before.

/// The characters that a part of a key is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// `0-9`
    Digits,
    /// `0-9a-f` in either case
    Hex,
    /// `A-Z0-9`
    Upper,
    /// `A-Za-z0-9`
    Alnum,
    /// `A-Za-z0-9_-`
    Word,
    /// `A-Za-z0-9_-.`
    Dotted,
    /// `A-Za-z0-9+/=`
    Base64,
    /// `A-Za-z0-9+/=_-.~%`: whatever a header or a query may carry.
    Header,
}

impl Set {
    pub(super) fn holds(self, byte: u8) -> bool {
        match self {
            Self::Digits => byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Header => {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-' | b'.' | b'~' | b'%')
            }
        }
    }
}

/// A part of what follows a prefix.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// So many characters of a set: at least, at most.
    Run(Set, usize, usize),
    /// Exactly this character.
    Is(u8),
}

/// Keys of one make.
#[derive(Debug)]
pub(super) struct Shape {
    /// What is written in the place of such a key.
    pub(super) kind: &'static str,
    /// How such keys begin; three characters at least.
    pub(super) prefixes: &'static [&'static str],
    /// What follows.
    pub(super) body: &'static [Part],
}

use Part::{Is, Run};
use Set::{Alnum, Base64, Digits, Dotted, Header, Hex, Upper, Word};

const fn shape(
    kind: &'static str,
    prefixes: &'static [&'static str],
    body: &'static [Part],
) -> Shape {
    Shape {
        kind,
        prefixes,
        body,
    }
}

/// More than any key has.
const ANY: usize = 4096;

/// Those that are met most often come first; the order decides between shapes of equal prefixes.
#[rustfmt::skip]
pub(super) const SHAPES: &[Shape] = &[
    shape("aws-access-key", &["AKIA", "ASIA", "ABIA", "ACCA"], &[Run(Upper, 16, 16)]),
    shape("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], &[Run(Alnum, 20, 255)]),
    shape("github-token", &["github_pat_"], &[Run(Word, 30, 255)]),
    shape("gitlab-token",
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-", "glffct-", "GR1348941"],
        &[Run(Dotted, 20, 400)]),
    shape("slack-token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xoxe-", "xoxe.xoxp-", "xoxe.xoxb-", "xapp-"],
        &[Run(Header, 16, 400)]),
    shape("slack-webhook", &["hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"],
        &[Run(Base64, 20, 120)]),
    shape("stripe-key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_"], &[Run(Alnum, 16, 255)]),
    shape("webhook-secret", &["whsec_"], &[Run(Base64, 24, 255)]),
    shape("anthropic-key", &["sk-ant-"], &[Run(Word, 20, 255)]),
    shape("openrouter-key", &["sk-or-v1-", "sk-or-"], &[Run(Hex, 32, 255)]),
    shape("openai-key", &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"], &[Run(Word, 20, 400)]),
    shape("langfuse-key", &["sk-lf-"], &[Run(Word, 20, 64)]),
    shape("api-key", &["sk-"], &[Run(Alnum, 20, 255)]),
    shape("google-api-key", &["AIza"], &[Run(Word, 30, 45)]),
    shape("google-oauth-secret", &["GOCSPX-"], &[Run(Word, 24, 64)]),
    shape("google-oauth-token", &["ya29."], &[Run(Dotted, 20, 2048)]),
    shape("google-refresh-token", &["1//0"], &[Run(Word, 40, 512)]),
    shape("npm-token", &["npm_"], &[Run(Alnum, 30, 64)]),
    shape("pypi-token", &["pypi-AgE"], &[Run(Word, 16, ANY)]),
    shape("huggingface-token", &["hf_", "api_org_"], &[Run(Alnum, 20, 64)]),
    shape("sendgrid-key", &["SG."], &[Run(Word, 16, 32), Is(b'.'), Run(Word, 32, 64)]),
    shape("twilio-key",
        &["SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7", "SK8", "SK9", "SKa", "SKb", "SKc", "SKd", "SKe", "SKf"],
        &[Run(Hex, 31, 31)]),
    shape("discord-webhook",
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        &[Run(Digits, 15, 22), Is(b'/'), Run(Word, 40, 120)]),
    shape("discord-token", &["mfa."], &[Run(Word, 80, 100)]),
    shape("teams-webhook", &[".webhook.office.com/webhookb2/"], &[Run(Header, 40, 400)]),
    shape("zapier-webhook", &["hooks.zapier.com/hooks/catch/"], &[Run(Base64, 8, 64)]),
    shape("azure-storage-key", &["AccountKey=", "SharedAccessKey="], &[Run(Base64, 40, 120)]),
    shape("azure-signature", &["&sig=", "?sig="], &[Run(Header, 30, 200)]),
    shape("aws-signature", &["X-Amz-Signature=", "X-Goog-Signature="], &[Run(Hex, 40, 1024)]),
    shape("aws-session-token", &["X-Amz-Security-Token="], &[Run(Header, 40, ANY)]),
    shape("aws-bedrock-key", &["ABSKQmVkcm9ja0FQSUtleS", "bedrock-api-key-"], &[Run(Base64, 40, ANY)]),
    shape("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], &[Run(Hex, 64, 64)]),
    shape("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_", "shptka_"], &[Run(Hex, 32, 40)]),
    shape("square-token", &["sq0atp-", "sq0csp-", "sq0idp-"], &[Run(Word, 20, 60)]),
    shape("square-token", &["EAAAE", "EAAAl"], &[Run(Word, 55, 70)]),
    shape("databricks-token", &["dapi"], &[Run(Hex, 32, 34)]),
    shape("doppler-token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], &[Run(Dotted, 40, 80)]),
    shape("linear-key", &["lin_api_", "lin_oauth_"], &[Run(Alnum, 32, 80)]),
    shape("notion-token", &["ntn_"], &[Run(Alnum, 40, 60)]),
    shape("notion-token", &["secret_"], &[Run(Alnum, 43, 43)]),
    shape("grafana-token", &["glsa_", "glc_"], &[Run(Header, 32, 400)]),
    shape("vault-token", &["hvs.", "hvb.", "hvr."], &[Run(Word, 20, 300)]),
    shape("pulumi-token", &["pul-"], &[Run(Hex, 40, 40)]),
    shape("planetscale-token", &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], &[Run(Dotted, 32, 64)]),
    shape("postman-key", &["PMAK-"], &[Run(Hex, 24, 24), Is(b'-'), Run(Hex, 34, 34)]),
    shape("rubygems-key", &["rubygems_"], &[Run(Hex, 48, 48)]),
    shape("brevo-key", &["xkeysib-", "xsmtpsib-"], &[Run(Hex, 64, 64), Is(b'-'), Run(Alnum, 16, 16)]),
    shape("mailgun-key", &["key-"], &[Run(Hex, 32, 32)]),
    shape("newrelic-key", &["NRAK-", "NRII-", "NRRA-"], &[Run(Word, 20, 64)]),
    shape("sentry-token", &["sntrys_", "sntryu_"], &[Run(Header, 60, 400)]),
    shape("supabase-key", &["sbp_"], &[Run(Hex, 40, 40)]),
    shape("supabase-key", &["sb_secret_"], &[Run(Word, 20, 80)]),
    shape("fly-token", &["fm1_", "fm1a_", "fm1r_", "fm2_", "fo1_"], &[Run(Header, 40, ANY)]),
    shape("vercel-token", &["vcp_", "vca_", "vci_", "vck_", "vcr_"], &[Run(Alnum, 24, 80)]),
    shape("netlify-token", &["nfp_", "nfc_", "nfo_"], &[Run(Alnum, 36, 60)]),
    shape("render-key", &["rnd_"], &[Run(Alnum, 28, 40)]),
    shape("groq-key", &["gsk_"], &[Run(Alnum, 40, 80)]),
    shape("xai-key", &["xai-"], &[Run(Alnum, 60, 100)]),
    shape("replicate-token", &["r8_"], &[Run(Alnum, 37, 40)]),
    shape("perplexity-key", &["pplx-"], &[Run(Alnum, 40, 64)]),
    shape("langsmith-key", &["lsv2_pt_", "lsv2_sk_", "ls__"], &[Run(Word, 32, 64)]),
    shape("together-key", &["tgp_v1_"], &[Run(Word, 32, 80)]),
    shape("nvidia-key", &["nvapi-"], &[Run(Word, 40, 100)]),
    shape("cerebras-key", &["csk-"], &[Run(Alnum, 40, 64)]),
    shape("tavily-key", &["tvly-"], &[Run(Word, 24, 64)]),
    shape("firecrawl-key", &["fc-"], &[Run(Hex, 32, 32)]),
    shape("pinecone-key", &["pcsk_"], &[Run(Word, 40, 100)]),
    shape("elevenlabs-key", &["sk_"], &[Run(Hex, 48, 48)]),
    shape("adafruit-key", &["aio_"], &[Run(Alnum, 28, 28)]),
    shape("airtable-token", &["pat"], &[Run(Alnum, 14, 14), Is(b'.'), Run(Hex, 64, 64)]),
    shape("atlassian-token", &["ATATT3", "ATCTT3"], &[Run(Header, 60, 400)]),
    shape("bitbucket-token", &["ATBB"], &[Run(Alnum, 32, 40)]),
    shape("trello-token", &["ATTA"], &[Run(Hex, 64, 76)]),
    shape("cloudflare-key", &["v1.0-"], &[Run(Hex, 24, 24), Is(b'-'), Run(Hex, 146, 146)]),
    shape("dropbox-token", &["sl.u.", "sl.B", "sl."], &[Run(Word, 120, ANY)]),
    shape("dynatrace-token", &["dt0c01.", "dt0s01."], &[Run(Upper, 24, 24), Is(b'.'), Run(Upper, 64, 64)]),
    shape("duffel-token", &["duffel_live_", "duffel_test_"], &[Run(Word, 40, 60)]),
    shape("easypost-key", &["EZAK", "EZTK"], &[Run(Alnum, 54, 54)]),
    shape("facebook-token", &["EAA"], &[Run(Alnum, 80, 400)]),
    shape("flutterwave-key", &["FLWSECK_TEST-", "FLWSECK-"], &[Run(Word, 12, 60)]),
    shape("frameio-token", &["fio-u-"], &[Run(Header, 60, 80)]),
    shape("heroku-key", &["HRKU-AA"], &[Run(Word, 50, 80)]),
    shape("infracost-key", &["ico-"], &[Run(Alnum, 32, 32)]),
    shape("jfrog-token", &["AKCp", "cmVmdGtu"], &[Run(Alnum, 56, 80)]),
    shape("octopus-key", &["API-"], &[Run(Upper, 26, 32)]),
    shape("1password-token", &["ops_eyJ"], &[Run(Base64, 100, ANY)]),
    shape("age-secret-key", &["AGE-SECRET-KEY-1"], &[Run(Upper, 58, 58)]),
    shape("openshift-token", &["sha256~"], &[Run(Word, 43, 43)]),
    shape("prefect-key", &["pnu_", "pnb_"], &[Run(Alnum, 36, 36)]),
    shape("readme-key", &["rdme_"], &[Run(Alnum, 64, 80)]),
    shape("scalingo-token", &["tk-us-"], &[Run(Word, 40, 60)]),
    shape("shippo-token", &["shippo_live_", "shippo_test_"], &[Run(Hex, 40, 40)]),
    shape("sourcegraph-token", &["sgp_", "slk_"], &[Run(Word, 40, 80)]),
    shape("typeform-token", &["tfp_"], &[Run(Dotted, 40, 80)]),
    shape("yandex-key", &["AQVN"], &[Run(Word, 35, 38)]),
    shape("figma-token", &["figd_", "figdr_", "figoh_"], &[Run(Word, 36, 60)]),
    shape("contentful-token", &["CFPAT-"], &[Run(Word, 40, 60)]),
    shape("cratesio-token", &["cio"], &[Run(Alnum, 32, 32)]),
    shape("docker-token", &["dckr_pat_", "dckr_oat_"], &[Run(Word, 24, 60)]),
    shape("deno-token", &["ddp_", "ddo_"], &[Run(Alnum, 36, 40)]),
    shape("plaid-token", &["access-production-", "access-development-", "access-sandbox-"], &[Run(Word, 36, 36)]),
    shape("braintree-token", &["access_token$production$", "access_token$sandbox$"], &[Run(Word, 16, 16), Is(b'$'), Run(Hex, 32, 32)]),
    shape("sonar-token", &["sqp_", "squ_", "sqa_"], &[Run(Hex, 40, 40)]),
    shape("tailscale-key", &["tskey-"], &[Run(Word, 24, 80)]),
    shape("alibaba-key", &["LTAI"], &[Run(Alnum, 17, 26)]),
    shape("tencent-key", &["AKID"], &[Run(Alnum, 32, 32)]),
    shape("buildkite-token", &["bkua_", "bkat_"], &[Run(Alnum, 40, 40)]),
    shape("circleci-token", &["CCIPAT_", "CCIPRJ_"], &[Run(Word, 40, 80)]),
    shape("nuget-key", &["oy2"], &[Run(Alnum, 43, 43)]),
    shape("clojars-token", &["CLOJARS_"], &[Run(Hex, 60, 60)]),
    shape("settlemint-token", &["sm_aat_", "sm_pat_", "sm_sat_"], &[Run(Alnum, 16, 16)]),
    shape("twitch-token", &["oauth:"], &[Run(Alnum, 30, 30)]),
    shape("confluent-secret", &["cflt"], &[Run(Base64, 60, 60)]),
    shape("mistral-key", &["cmt_"], &[Run(Alnum, 32, 64)]),
    shape("resend-key", &["re_"], &[Run(Alnum, 8, 10), Is(b'_'), Run(Alnum, 22, 26)]),
    shape("posthog-key", &["phx_"], &[Run(Alnum, 40, 60)]),
    shape("stytch-secret", &["secret-live-", "secret-test-"], &[Run(Header, 32, 48)]),
    shape("clickhouse-key", &["4b1d"], &[Run(Alnum, 38, 38)]),
    shape("looker-secret", &["1.AQ"], &[Run(Word, 80, 200)]),
];
