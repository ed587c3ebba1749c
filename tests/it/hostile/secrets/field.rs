//! Secrets that nobody looked at while the first patterns were written: a third batch of kinds, each in
//! every form, also in base64.

use memctl_redact::redact;

use super::carriers::Carrier;
use super::kinds::{KEYS, Kind, LATER};
use super::rates::left;
use super::templates::{FilledTemplate, Random, base64, fill};

/// Kinds in the words that they usually stand in.
pub(crate) const FIELD: &[Kind] = &[
    ("honeycomb header", "X-Honeycomb-Team: «{a22}»"),
    ("honeycomb ingest", "x-honeycomb-team=«hcaik_{l58}»"),
    ("honeycomb bare", "honeycomb key «hcaik_{l58}» was rotated"),
    (
        "honeycomb otlp",
        "OTEL_EXPORTER_OTLP_HEADERS=x-honeycomb-team=«{a22}»",
    ),
    ("brave", "X-Subscription-Token: «BSA{w28}»"),
    ("brave bare", "search with «BSA{w28}» fails"),
    ("brave env", "BRAVE_API_KEY=«BSA{w28}»"),
    ("ibm env", "IBMCLOUD_API_KEY=«{w44}»"),
    ("ibm login", "ibmcloud login --apikey «{w44}» -r us-south"),
    ("ibm json", "{\"name\": \"ci\", \"apikey\": \"«{w44}»\"}"),
    (
        "ibm iam",
        "curl -d 'grant_type=urn:ibm:params:oauth:grant-type:apikey&apikey=«{w44}»' https://iam.cloud.ibm.com/identity/token",
    ),
    ("ibm watson", "auth=('apikey', '«{w44}»')"),
    ("discord bot", "DISCORD_TOKEN=«{b64id}.{w6}.{w38}»"),
    ("discord header", "Authorization: Bot «{b64id}.{w6}.{w27}»"),
    ("discord login", "client.login('«{b64id}.{w6}.{w38}»');"),
    ("discord mfa", "token «mfa.{w84}»"),
    ("discord secret", "DISCORD_CLIENT_SECRET=«{w32}»"),
    (
        "oci auth token",
        "docker login iad.ocir.io -u ns/jane -p '«{P20}»'",
    ),
    ("oci passphrase", "pass_phrase=«{P16}»"),
    ("oci pass env", "OCI_CLI_PASSPHRASE=«{P16}»"),
    ("oci secret", "aws_secret_access_key = «{b43}=»"),
    ("github refresh", "refresh «ghr_{a36}»"),
    (
        "gitlab deploy",
        "docker login -u gitlab+deploy-token-1 -p «gldt-{w20}» registry.example.org",
    ),
    ("gitlab ci", "«glcbt-64_{w20}»"),
    ("slack app", "SLACK_APP_TOKEN=«xapp-1-A{A10}-{d13}-{h64}»"),
    ("slack cookie", "-b 'd=«xoxd-{a60}»'"),
    ("stripe live hook", "endpoint_secret = '«whsec_{a32}»'"),
    ("anthropic admin", "«sk-ant-admin01-{w93}AA»"),
    ("openai service", "«sk-svcacct-{w74}T3BlbkFJ{w74}»"),
    ("gcp hmac", "«GOOG1E{A55}»"),
    (
        "azure function",
        "https://acme.azurewebsites.net/api/f?code=«{w54}==»",
    ),
    (
        "azure cosmos",
        "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=«{b86}==»;",
    ),
    (
        "azure service bus",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{b43}=»",
    ),
    ("azure search", "api-key: «{a52}»"),
    ("digitalocean spaces", "SPACES_SECRET=«{b43}»"),
    ("linode", "LINODE_TOKEN=«{h64}»"),
    ("hetzner", "HCLOUD_TOKEN=«{a64}»"),
    ("vultr", "VULTR_API_KEY=«{A36}»"),
    ("scaleway", "SCW_SECRET_KEY=«{uuid}»"),
    ("ovh", "OVH_APPLICATION_SECRET=«{a32}»"),
    ("exoscale", "EXOSCALE_API_SECRET=«{w43}»"),
    ("backblaze", "B2_APPLICATION_KEY=«K00{a28}»"),
    ("wasabi", "secret_key = «{a40}»"),
    ("mux", "MUX_TOKEN_SECRET=«{b75}»"),
    ("livekit", "LIVEKIT_API_SECRET=«{a43}»"),
    ("deepgram", "Authorization: Token «{h40}»"),
    ("assemblyai", "authorization: «{h32}»"),
    ("anyscale", "«esecret_{a40}»"),
    ("together env", "TOGETHER_API_KEY=«{h64}»"),
    (
        "gemini query",
        "https://generativelanguage.googleapis.com/v1beta/models?key=«AIza{w35}»",
    ),
    ("modal", "MODAL_TOKEN_SECRET=«as-{a22}»"),
    (
        "modal cli",
        "modal token set --token-id ak-{a22} --token-secret «as-{a22}»",
    ),
    (
        "wandb netrc",
        "machine api.wandb.ai\n  login user\n  password «{h40}»",
    ),
    ("comet", "COMET_API_KEY=«{a25}»"),
    ("exa", "x-api-key: «{uuid}»"),
    ("serper", "X-API-KEY: «{h40}»"),
    ("serpapi", "https://serpapi.com/search?q=x&api_key=«{h64}»"),
    ("apify", "«apify_api_{a36}»"),
    (
        "browserless",
        "https://chrome.browserless.io?token=«{uuid}»",
    ),
    ("mapbox", "MAPBOX_SECRET=«sk.eyJ1Ijoi{a60}.{w22}»"),
    ("twilio sendgrid", "Authorization: Bearer «SG.{w22}.{w43}»"),
    ("vonage", "VONAGE_API_SECRET=«{a16}»"),
    ("plivo", "PLIVO_AUTH_TOKEN=«{a40}»"),
    ("onesignal", "«os_v2_app_{l100}»"),
    ("expo", "EXPO_TOKEN=«{w40}»"),
    (
        "fastlane",
        "FASTLANE_APPLE_APPLICATION_SPECIFIC_PASSWORD=«{L4}-{L4}-{L4}-{L4}»",
    ),
    ("sentry user", "«sntryu_{h64}»"),
    ("bugsnag", "BUGSNAG_API_KEY=«{h32}»"),
    ("axiom", "«xaat-{uuid}»"),
    ("betterstack", "LOGTAIL_TOKEN=«{a24}»"),
    ("prefect", "PREFECT_API_KEY=«pnu_{a36}»"),
    ("dagster", "Dagster-Cloud-Api-Token: «user:{h32}»"),
    ("airbyte", "AIRBYTE_CLIENT_SECRET=«{a32}»"),
    ("fivetran", "curl -u {a16}:«{a32}» https://api.fivetran.com"),
    ("snowflake", "snowsql -a x -u jane --password '«{P16}»'"),
    ("databricks oauth", "«dose{h32}»"),
    (
        "mongodb atlas",
        "mongodb+srv://jane:«{a16}»@cluster0.x.mongodb.net/shop",
    ),
    (
        "redis cloud",
        "rediss://default:«{a32}»@x.redis-cloud.com:16000",
    ),
    (
        "kafka jaas",
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"a\" password=\"«{a24}»\";",
    ),
    ("ansible vault", "ansible_become_pass: «{p12}»"),
    (
        "jenkins",
        "curl -u jane:«11{h32}» https://ci.example.org/api",
    ),
    (
        "teamcity",
        "Authorization: Bearer «eyJ0eXAiOiAiVENWMiJ9.{w36}.{w48}»",
    ),
    (
        "argocd",
        "argocd login x --username admin --password «{a16}»",
    ),
    ("rancher", "«token-{l5}:{l54}»"),
    ("wireguard", "PrivateKey = «{b43}=»"),
    ("openvpn", "auth-user-pass\njane\n«{p12}»"),
    ("htaccess", "jane:«$2y$10${a53}»"),
    ("shadow", "jane:«$6${a16}${a86}»:19000:0:99999:7:::"),
    ("laravel", "APP_KEY=«base64:{b43}=»"),
    ("rails", "secret_key_base: «{h128}»"),
    ("django", "SECRET_KEY = 'django-insecure-«{a50}»'"),
    ("phoenix", "secret_key_base: \"«{b64}»\""),
    ("flask", "app.secret_key = b'«{a24}»'"),
    ("wordpress", "define('DB_PASSWORD', '«{P16}»');"),
    ("magento", "'key' => '«{h32}»'"),
    (
        "git credential",
        "protocol=https\nhost=github.com\nusername=jane\npassword=«ghp_{a36}»",
    ),
    (
        "npmrc basic",
        "//registry.example.org/:_password=«{b64 jane:}»",
    ),
    ("cargo", "token = \"«cio{a32}»\""),
    (
        "nuget config",
        "<add key=\"ClearTextPassword\" value=\"«{P16}»\" />",
    ),
    (
        "maven",
        "<privateKey>x</privateKey><passphrase>«{P16}»</passphrase>",
    ),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9«.eyJzdWIiOiIx{a40}.{w43}»"),
    ("paseto", "«v2.local.{w120}»"),
    ("macaroon", "«MDAxY2xvY2F0aW9u{w120}»"),
    ("telegram webhook", "TELEGRAM_BOT_TOKEN=«{d10}:AA{w33}»"),
    ("matrix", "access_token=«syt_{a20}_{a20}_{a6}»"),
    ("mattermost", "MATTERMOST_TOKEN=«{l26}»"),
    ("zoom", "ZOOM_CLIENT_SECRET=«{a32}»"),
    ("linear hook", "«lin_wh_{a40}»"),
    ("shopify shared", "«shpss_{h32}»"),
    ("square", "«EAAA{w60}»"),
    ("paypal", "PAYPAL_SECRET=«E{w79}»"),
    ("adyen", "X-API-Key: «AQE{b120}»"),
    ("coinbase key", "\"apiKeySecret\": \"«{b86}==»\""),
    ("ethereum", "PRIVATE_KEY=«0x{h64}»"),
    ("bitcoin wif", "privkey: «5K{a49}»"),
];

/// Number of forms for each kind.
const FORMS: usize = 8;

/// Fills in a template. `{b64id}` is a number in base64, as in tokens of Discord.
fn filled(template: &str, random: &mut Random) -> FilledTemplate {
    let number: String = (0..18)
        .map(|_| char::from(b'1' + u8::try_from(random.below(9)).unwrap()))
        .collect();
    let id = base64(number.as_bytes());
    fill(&template.replace("{b64id}", &id), random)
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * f64::from(u32::try_from(part).unwrap()) / f64::from(u32::try_from(whole).unwrap())
}

#[test]
fn secrets_of_the_field_go_in_every_form() {
    let mut all = 0;
    let mut failures = Vec::new();
    for (name, template) in FIELD {
        let mut random = Random::new(name);
        let first = random.below(Carrier::ALL.len());
        for form in 0..FORMS {
            let carrier = match form {
                0 => Carrier::Plain,
                form => Carrier::ALL[(first + form * 3) % Carrier::ALL.len()],
            };
            let planted = filled(template, &mut random);
            let Some(text) = carrier.carry(&planted, &mut random) else {
                continue;
            };
            all += 1;
            let text = redact(&text).text.into_owned();
            if let Some(piece) = left(&text, &planted.secrets, &planted.open) {
                failures.push(format!("{name} as {carrier:?}: `{piece}` in {text:?}"));
            }
        }
    }
    println!(
        "field: {} of {all} survive ({:.2} %)",
        failures.len(),
        share(failures.len(), all)
    );
    if std::env::var_os("SECRETS_SHOW").is_some() {
        println!("{}", failures.join("\n"));
    }
    assert!(all >= 800, "{all}");
    // Two kinds have no form: the second line of a file, and a member called `key`.
    assert!(failures.len() * 40 <= all, "{failures:#?}");
}

#[test]
fn secrets_in_base64_go_where_they_go_in_plain_text() {
    let mut all = 0;
    let mut failures = Vec::new();
    let lines = [KEYS, LATER, FIELD].concat();
    for (name, template) in lines
        .iter()
        .filter(|(_, template)| !template.contains('\n'))
    {
        let mut random = Random::new(name);
        let planted = filled(template, &mut random);
        let inside = planted.secrets.iter().chain([&planted.text]);
        for inside in inside.filter(|inside| inside.len() >= 18 && !redact(inside).found.is_empty())
        {
            let encoded = base64(inside.as_bytes());
            for text in [
                format!("echo {encoded} | base64 -d\n"),
                format!("apiVersion: v1\ndata:\n  config: {encoded}\n"),
                format!("{{\"payload\": \"{encoded}\"}}"),
            ] {
                all += 1;
                let clean = redact(&text).text.into_owned();
                if clean.contains(&encoded[..16]) {
                    failures.push(format!("{name}: {inside} in {clean}"));
                }
            }
        }
    }
    println!(
        "base64: {} of {all} survive ({:.2} %)",
        failures.len(),
        share(failures.len(), all)
    );
    if std::env::var_os("SECRETS_SHOW").is_some() {
        println!("{}", failures.join("\n"));
    }
    assert!(all >= 600, "{all}");
    assert!(failures.len() * 100 <= all, "{failures:#?}");
}

/// Lines of logs, lock files and built code, without a secret.
const ORDINARY: &[&str] = &[
    "{h40} refs/remotes/origin/feature-{l6}",
    "commit {h40} (tag: v1.{d2}.0)",
    "request {uuid} took {d3} ms",
    "trace={h32} span={h16} level=info msg=\"done in {d2} ms\"",
    "sha256:{h64}  target/release/app-{l8}",
    "\"integrity\": \"sha512-{b86}==\",",
    "\"resolved\": \"https://registry.npmjs.org/left-pad/-/left-pad-1.{d1}.0.tgz#{h40}\"",
    "checksum = \"{h64}\"",
    "github.com/acme/{l8} v0.0.0-20260220{d6}-{h12} h1:{b43}=",
    "    --hash=sha256:{h64} \\",
    "digest: sha256:{h64} size: {d4}",
    "#{d2} {d1}.{d3} Downloading {l12}-{d1}.{d1}.{d1}-py3-none-any.whl ({d2} kB)",
    "!function(e,t){var n={L1}.{l6}({L1},{d2});return n?{L3}({L4}):{L2}}(this,{d1});",
    "const {L6}={L8}({L5}),{L7}=()=>{L9}.map(({L1})=>{L1}.{L4}*{d2});",
    "//# sourceMappingURL=app.{h20}.js.map",
    "\"mappings\":\"AAAA,SAASA,IAAIC,CAAC,EAAE;AACd,OAAOD,{L4}\"",
    "<link rel=stylesheet href=/assets/index-{a8}.css integrity=sha384-{b64}>",
    "background:url(data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b120})",
    "data:font/woff2;base64,d09GMgABAAAAA{b160}",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} jane@host-{d2}",
    "SHA256:{b43} jane@host (ED25519)",
    "-rw-r--r-- 1 jane jane {d5} Feb 20 10:0{d1} report_{h8}.pdf",
    "pod/web-{l10}-{l5} 1/1 Running 0 {d2}m",
    "container {h12} started as {h64}",
    "[2026-02-20T10:0{d1}:{d1}3.{d3}Z] GET /v1/items/{uuid} 200 {d2}ms",
    "10.{d1}.{d1}.{d2} - - \"GET /static/{h32}.js HTTP/1.1\" 304 0",
    "etag: W/\"{h40}\"",
    "arn:aws:iam::{d12}:role/deploy-{l8}",
    "ocid1.instance.oc1.iad.{l60}",
    "crn:v1:bluemix:public:cos:global:a/{h32}:{uuid}::",
    "projects/acme-{d6}/locations/europe-west1/keyRings/{l8}",
    "test module::{l8}::{l12} ... ok",
    "error[E0{d3}]: mismatched types in `{l10}`",
    "   Compiling {l9} v{d1}.{d2}.{d1}",
    "migration 2026{d4}_{l12} applied in {d3} ms",
    "{d10},{d2}.{d4},{uuid},active,{l8}@example.org",
    "0x{h40} is the address of a contract",
    "tx 0x{h64} confirmed in block {d8}",
    "getElementsByClassNameAndTheirParents{d1}(node.{L12})",
    "/usr/local/lib/python3.12/site-packages/{l12}/{l10}/{l14}.py",
    "com.acme.{l8}.{l10}.{L1}{l12}Factory$Builder.{l9}({L1}{l6}.java:{d3})",
    "UID={d4} PID={d5} session-{d2}.scope inode={d8}",
    "color: #{h6}; --shadow: 0 1px 2px rgb(0 0 0 / {d2}%)",
    "w{d3}h{d3} {h16}-{h16} frame={d6} pts={d9}",
];

#[test]
fn ordinary_lines_stay() {
    let mut all = 0;
    let mut failures = Vec::new();
    for template in ORDINARY {
        let mut random = Random::new(template);
        for _ in 0..34 {
            let line = filled(template, &mut random).text;
            all += 1;
            let redacted = redact(&line);
            if redacted.text != line {
                failures.push(format!("{:?} in {line:?}", redacted.found));
            }
        }
    }
    println!("ordinary: {} of {all} fall", failures.len());
    assert!(all >= 1_400, "{all}");
    assert!(failures.is_empty(), "{failures:#?}");
}
