//! Secrets for tests, assembled at run time, so that no file contains one.

/// Pseudo-random letters and digits of the given length; always the same sequence.
pub(crate) fn random(length: usize) -> String {
    const ALPHABET: &[u8] = b"aZ7kQ2mX9pLr4TvB1nWc8YsD3fGh6JdK5uEq0RxMiOoCtVwyHzSgbPlNjAFUI";
    let mut state = 0x2545_F491_u32;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(ALPHABET[(state >> 16) as usize % ALPHABET.len()])
        })
        .collect()
}

fn of(alphabet: &str, length: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    random(length)
        .bytes()
        .map(|b| alphabet[usize::from(b) % alphabet.len()])
        .collect()
}

fn base64(text: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let mut bits = 0_u32;
        for i in 0..3 {
            bits = bits << 8 | u32::from(chunk.get(i).copied().unwrap_or(0));
        }
        for i in 0..=chunk.len() {
            out.push(char::from(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize]));
        }
    }
    out
}

/// Keys with a prefix, and their kinds.
#[expect(clippy::too_many_lines, reason = "it is a list")]
pub(crate) fn keys() -> Vec<(&'static str, String)> {
    let hex = |n| of("0123456789abcdef", n);
    let upper = |n| of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", n);
    let r = random;
    vec![
        ("aws-access-key", format!("AK{}{}", "IA", upper(16))),
        ("aws-access-key", format!("AS{}{}", "IA", upper(16))),
        ("github-token", format!("gh{}{}", "p_", r(36))),
        ("github-token", format!("gh{}{}", "s_", r(36))),
        (
            "github-token",
            format!("github{}{}_{}", "_pat_", r(22), r(59)),
        ),
        ("gitlab-token", format!("gl{}{}", "pat-", r(20))),
        (
            "slack-token",
            format!(
                "xo{}{}-{}-{}",
                "xb-",
                of("0123456789", 12),
                of("0123456789", 12),
                r(24)
            ),
        ),
        (
            "slack-webhook",
            format!(
                "hooks.slack{}/T{}/B{}/{}",
                ".com/services",
                upper(8),
                upper(8),
                r(24)
            ),
        ),
        ("stripe-key", format!("sk_{}{}", "live_", r(24))),
        ("stripe-key", format!("rk_{}{}", "test_", r(24))),
        ("webhook-secret", format!("wh{}{}", "sec_", r(32))),
        ("openai-key", format!("sk-{}{}", "proj-", r(120))),
        ("api-key", format!("s{}{}T3Blbk{}", "k-", r(20), r(20))),
        ("anthropic-key", format!("sk-{}-api03-{}AA", "ant", r(93))),
        ("openrouter-key", format!("sk-{}-v1-{}", "or", hex(64))),
        ("google-api-key", format!("AI{}{}", "za", r(35))),
        ("google-oauth-secret", format!("GOC{}-{}", "SPX", r(28))),
        ("google-oauth-token", format!("ya{}.{}", "29", r(80))),
        ("npm-token", format!("np{}{}", "m_", r(36))),
        (
            "pypi-token",
            format!("py{}AgEIcHlwaS5vcmc{}", "pi-", r(120)),
        ),
        ("huggingface-token", format!("h{}{}", "f_", r(34))),
        ("sendgrid-key", format!("S{}{}.{}", "G.", r(22), r(43))),
        ("twilio-key", format!("S{}{}", "K", hex(32))),
        (
            "jwt",
            format!(
                "ey{}.ey{}.{}",
                "JhbGciOiJIUzI1NiJ9",
                "JzdWIiOiIxMjM0NTY3ODkwIn0",
                r(43)
            ),
        ),
        (
            "telegram-token",
            format!("{}:A{}{}", of("123456789", 10), "A", r(33)),
        ),
        (
            "discord-token",
            format!("{}.{}.{}", base64("123456789012345678"), r(6), r(38)),
        ),
        (
            "discord-webhook",
            format!(
                "discord.com/api/{}/{}/{}",
                "webhooks",
                of("123456789", 18),
                r(68)
            ),
        ),
        ("azure-secret", format!("a1B8{}{}", "Q~", r(34))),
        ("azure-storage-key", format!("Account{}{}==", "Key=", r(86))),
        ("digitalocean-token", format!("dop{}{}", "_v1_", hex(64))),
        ("shopify-token", format!("shp{}{}", "at_", hex(32))),
        ("databricks-token", format!("da{}{}", "pi", hex(32))),
        ("vault-token", format!("hv{}{}", "s.", r(24))),
        ("linear-key", format!("lin{}{}", "_api_", r(40))),
        ("notion-token", format!("nt{}{}", "n_", r(46))),
        ("grafana-token", format!("gl{}{}_{}", "sa_", r(32), hex(8))),
        ("postman-key", format!("PM{}{}-{}", "AK-", hex(24), hex(34))),
        ("rubygems-key", format!("ruby{}{}", "gems_", hex(48))),
        ("mailgun-key", format!("ke{}{}", "y-", hex(32))),
        ("mailchimp-key", format!("{}-u{}", hex(32), "s12")),
        ("supabase-key", format!("sb{}{}", "p_", hex(40))),
        ("groq-key", format!("gs{}{}", "k_", r(52))),
        ("replicate-token", format!("r{}{}", "8_", r(37))),
        ("perplexity-key", format!("pp{}{}", "lx-", r(48))),
        ("airtable-token", format!("pa{}{}.{}", "t", r(14), hex(64))),
        ("atlassian-token", format!("ATA{}{}", "TT3", r(180))),
        ("docker-token", format!("dckr{}{}", "_pat_", r(27))),
        (
            "tailscale-key",
            format!("ts{}{}-{}", "key-auth-", r(16), r(32)),
        ),
        (
            "terraform-token",
            format!("{}.atlas{}{}", r(14), "v1.", r(67)),
        ),
        (
            "age-secret-key",
            format!("AGE-SECRET{}{}", "-KEY-1", upper(58)),
        ),
    ]
}

/// Private key block with the given number of lines.
pub(crate) fn key_block(label: &str, lines: usize) -> String {
    let body: Vec<String> = (0..lines).map(|i| random(64 + i)[i..].to_owned()).collect();
    format!(
        "-----BEGIN {label}PRIVATE{0}\n{1}\n-----END {label}PRIVATE{0}",
        " KEY-----",
        body.join("\n")
    )
}

/// Secrets recognised by their context: kind, text, and the part that must be redacted.
#[expect(clippy::too_many_lines, reason = "it is a list")]
pub(crate) fn named() -> Vec<(&'static str, String, String)> {
    let basic = base64(&format!("user:{}", random(12)));
    let cases = [
        ("password", "password=", "hunter2", ""),
        ("password", "DB_PASSWORD=", "S3cr3t!pass", "\n"),
        ("password", "PGPASSWORD=", "letmein", " psql"),
        ("password", "\"password\": \"", "letmein2", "\""),
        ("password", "db_password: '", "pa55word!", "'"),
        ("password", "the password is ", "Tr0ub4dor&3xyz", "."),
        ("password", "password: ", "Tr0ub4dor&3xyz", "\n"),
        ("password", "mysql --password ", "Zx81spectrum", " -h db"),
        (
            "password",
            "machine host login bob password ",
            "k1ngk0ng",
            "",
        ),
        ("password", "config[\"password\"] = \"", "k1ngk0ng", "\""),
        ("password", "{\\\"password\\\": \\\"", "k1ngk0ng", "\\\"}"),
        ("password", "Server=db;User=sa;Password=", "P@ssw0rd9", ";"),
        (
            "password", "curl -u admin:", "k1ngk0ng", " https://example.com",
        ),
        ("password", "sshpass -p ", "k1ngk0ng", " ssh host"),
        ("password", "mysql -u root -p", "k1ngk0ng", " shop"),
        ("password", "name: DB_PASSWORD\n  value: ", "k1ngk0ng", "\n"),
        ("password", "password: str = \"", "k1ngk0ng", "\""),
        (
            "secret",
            "aws_secret_access_key = ",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzz1234",
            "\n",
        ),
        (
            "secret",
            "client_secret: \"",
            "8f7e6d5c4b3a29181706f5e4d3c2b1a0",
            "\"",
        ),
        (
            "secret",
            "secret: '",
            "550e8400-e29b-41d4-a716-446655440000",
            "'",
        ),
        (
            "secret",
            "//registry.example/:_authToken=",
            "a1b2c3d4e5f6a7b8c9d0",
            "\n",
        ),
        ("token", "token: ", "a1B2c3D4e5F6g7H8", ""),
        ("token", "--token ", "a1B2c3D4e5F6g7H8", " run"),
        ("token", "ACCESS_TOKEN=", "a1b2c3d4e5f6a7b8c9d0", "&x=1"),
        (
            "api-key",
            "x-api-key: ",
            "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
            "\r\n",
        ),
        ("api-key", "apiKey: \"", "Xk29fLq8Tz71mNw4", "\","),
        (
            "url-password",
            "postgres://admin:",
            "s3cr3t",
            "@db.example.com:5432/app",
        ),
        ("url-password", "redis://:", "p4ssw0rdX", "@cache:6379/0"),
        (
            "url-password", "mongodb+srv://app:", "pa/ss:w0rd", "@cluster.example/db",
        ),
        (
            "url-password", "https://", "a1b2c3d4e5f6a7b8c9d0", "@git.example/repo.git",
        ),
        (
            "bearer-token",
            "curl -H 'X-Auth: Bearer ",
            "a1B2c3D4e5F6g7H8i9",
            "'",
        ),
        (
            "authorization", "Authorization: Bearer ", "a1B2c3D4e5F6g7H8i9", "\n",
        ),
        (
            "authorization",
            "\"Authorization\": \"token ",
            "a1B2c3D4e5F6g7H8i9",
            "\"",
        ),
        (
            "cookie",
            "Cookie: ",
            "session=a1B2c3D4e5F6; theme=dark",
            "\r\nHost: x",
        ),
        (
            "azure-signature",
            "https://x.example/c?sv=2022",
            "&sig=a1B2c3D4e5F6g7H8i9a1B2c3D4e5F6g7H8i9%3D",
            " ok",
        ),
    ];
    let mut all: Vec<_> = cases
        .into_iter()
        .map(|(kind, before, secret, after)| {
            (kind, format!("{before}{secret}{after}"), secret.to_owned())
        })
        .collect();
    all.push(("basic-auth", format!("send Basic {basic} now"), basic));
    all
}
