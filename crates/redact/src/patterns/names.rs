//! Names that make the value beside them secret, and the strictness of the value check.

use super::super::class::Class::{Key, Password, Phrase, Provider, Token};
use super::Detector::{Camel, Name};
use super::{Pattern, pattern};

/// A longer word precedes each shorter word that it begins with.
#[rustfmt::skip]
pub(super) const NAMES: &[Pattern] = &[
    pattern("mnemonic", "Seed phrases of wallets",
        &["mnemonic", "seed phrase", "seed_phrase", "seedphrase", "recovery phrase", "recovery_phrase", "secret recovery phrase"], Name(Phrase),
        &["mnemonic: «witch collapse practice feed shame open despair creek road again ice least»"],
        &["the 12 words of a mnemonic are chosen from a list", "mnemonic: see above"]),
    pattern("password", "Passwords behind their names",
        &["passphrase", "pass_phrase", "pass-phrase", "password", "passwort", "passwd", "passcode", "kennwort", "motdepasse", "contrasena", "_pass", "-pass", "dbpass", "requirepass", "masterauth", "storepass", "keypass", "pass", "_pw", "pwd", "psk"], Name(Password),
        &["DB_PASSWORD=«{p12}»", "\"pass\": \"«{p12}»\"", "  password: «{P14}»", "password: |\n    «{P20}»\nport: 1", "<password>«{p12}»</password>", "-Password «{p12}»", "requirepass «{P20}»"],
        &["password: required", "password = getpass()", "PASSWORD=${X}", "\"password\": \"string\"", "the password is wrong", "pwd: /home/jane/src"]),
    pattern("secret", "Secrets behind their names", &["secret"], Name(Token),
        &["client_secret: \"«{h32}»\"", "APP_SECRET=«{a32}»"],
        &["secretName: my-tls-secret-v1", "secret = config.get('secret')"]),
    pattern("token", "Tokens behind their names", &["token"], Name(Token),
        &["token: «{a24}»", "--token=«{a24}»", "token              «{a24}»"],
        &["max_tokens: 4096", "\"nextPageToken\": \"{w60}\"", "token = self.lexer.next_token()"]),
    pattern("api-key", "API keys behind their names", &["api_key", "api-key", "api key", "apikey"], Name(Token),
        &["X-Api-Key: «{h32}»", "apiKey: \"«{a24}»\""],
        &["api_key: YOUR_API_KEY", "apiKey: 'test-api-key'"]),
    pattern("secret", "Keys behind names that only secret ones have",
        &["access_key", "access-key", "access key", "accesskey", "account_key", "account-key", "accountkey", "auth_key", "auth-key", "authkey", "authtoken", "private_key", "private-key", "privatekey",
          "signing_key", "signing-key", "signingkey", "encryption_key", "encryption-key", "encryptionkey", "master_key", "master-key", "masterkey", "service_key", "service_role_key",
          "subscription_key", "subscription-key", "consumer_key", "deploy_key", "admin_key", "presharedkey", "pre_shared_key", "pre-shared-key", "app_key", "appkey", "license_key", "licence_key", "shared_key", "storage_key", "unseal key", "root key",
          "credential", "_auth", "_salt", "connectionstring", "contribsys__com", "honeycomb-team", "honeycomb_team", "x-jfrog-art-api", "phpsessid", "jsessionid", "connect.sid", "laravel_session"], Name(Token),
        &["account_key = \"«{b86}==»\"", "AUTH_SALT', '«{P60}»'", "Unseal Key 1: «{b43}=»", "JSESSIONID=«{A32}»"],
        &["access_key: ${KEY}", "credentials: include", "password_salt: null"]),
    pattern("secret", "Keys behind names that end in key", &["_key", "-key"], Name(Key),
        &["DEPLOY_KEY=«{a32}»", "algolia-admin-key: \"«{h32}»\""],
        &["cache-key: node-modules-{h64}", "primary_key: {uuid}", "public_key = \"{b43}=\"", "s3_key: uploads/2026/02/a1b2c3.png"]),
    pattern("secret", "Keys behind names that end in Key", &["Key"], Camel,
        &["deployKey: \"«{a32}»\""], &["publicKey: \"{a40}\"", "onKeyDown: handleKeyDownOfTheMenu"]),
    pattern("authorization", "Headers of authorization", &["authorization"], Name(Token),
        &["Authorization: Bearer «{a40}»", "authorization: «{a40}»"],
        &["Authorization: Bearer $TOKEN", "Authorization: <token>"]),
    pattern("secret", "Values behind the name of a vendor",
        &["adafruit", "airtable", "algolia", "alibaba", "asana", "atlassian", "confluence", "beamer", "bitbucket", "bittrex", "cloudflare", "codecov", "cohere", "coinbase", "confluent", "contentful",
          "datadog", "discord", "droneci", "etsy", "facebook", "fastly", "finicity", "finnhub", "flickr", "freshbooks", "gitter", "gocardless", "heroku", "hubspot", "intercom", "jfrog", "artifactory", "bintray", "jira", "privateai", "private_ai", "sonar",
          "kraken", "kucoin", "launchdarkly", "linkedin", "lob_", "mailchimp", "mailgun", "mapbox", "mattermost", "meraki", "messagebird", "netlify", "newrelic", "new_relic", "new-relic", "nytimes", "okta", "plaid",
          "rapidapi", "sendbird", "sentry", "snyk", "squarespace", "sumologic", "telegram", "travis", "twitch", "twitter", "yandex", "zendesk", "devops", "pagerduty", "opsgenie", "segment", "mixpanel",
          "amplitude", "braze", "klaviyo", "dropbox", "harness"], Name(Provider),
        &["datadog: \"«{h40}»\"", "ALGOLIA = '«{h32}»'", "AZURE_DEVOPS_PAT=«{l52}»"],
        &["sentry_release: {h40}", "heroku: v1.2.3", "facebook: https://facebook.com/acme.inc.page1", "discord.js 14.14.1"]),
];
