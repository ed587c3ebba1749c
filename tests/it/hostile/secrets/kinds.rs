//! Secrets of many kinds in the words that they usually stand in.
//!
//! Each kind is a name and a template. Half of the kinds were looked at while the patterns were
//! written; the other half, told by a hash of the name, was not.

/// Name and template.
pub(crate) type Kind = (&'static str, &'static str);

/// Keys that vendors give out.
pub(crate) const KEYS: &[Kind] = &[
    ("aws access key", "aws_access_key_id = «AKIA{U16}»"),
    ("aws session key id", "AccessKeyId: «ASIA{U16}»"),
    ("aws secret", "aws_secret_access_key = «{b40}»"),
    (
        "aws session token",
        "AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2Vj{b200}=»",
    ),
    (
        "aws csv",
        "Access key ID,Secret access key\nAKIA{U16},«{b40}»",
    ),
    (
        "aws csv user",
        "User name,Password,Access key ID,Secret access key,Console login link\ndeploy,«{P16}»,AKIA{U16},«{b40}»,https://1234.signin.aws.amazon.com/console",
    ),
    (
        "aws sts text",
        "CREDENTIALS\tASIA{U16}\t2026-02-20T10:00:00Z\t«{b40}»",
    ),
    (
        "aws configure prompt",
        "AWS Secret Access Key [None]: «{b40}»",
    ),
    (
        "aws configure set",
        "aws configure set aws_secret_access_key «{b40}»",
    ),
    (
        "aws cli json",
        "{\"AccessKey\": {\"AccessKeyId\": \"AKIA{U16}\", \"SecretAccessKey\": \"«{b40}»\"}}",
    ),
    ("aws pair", "using AKIA{U16}:«{b40}» for s3"),
    (
        "github pat",
        "git clone https://«ghp_{a36}»@github.com/acme/app.git",
    ),
    ("github fine", "GITHUB_TOKEN=«github_pat_{a22}_{a59}»"),
    ("github app", "token «ghs_{a36}» expires soon"),
    ("gitlab pat", "PRIVATE-TOKEN: «glpat-{w20}»"),
    ("gitlab oauth", "app secret «gloas-{h64}»"),
    (
        "gitlab runner",
        "gitlab-runner register --token «glrt-{w20}»",
    ),
    ("slack bot", "SLACK_BOT_TOKEN=«xoxb-{d12}-{d12}-{a24}»"),
    ("slack user", "«xoxp-{d12}-{d12}-{d12}-{h32}»"),
    (
        "slack hook",
        "curl -X POST https://hooks.slack.com/services/«T{A8}/B{A10}/{a24}»",
    ),
    ("stripe", "Stripe.api_key = '«sk_live_{a24}»'"),
    ("stripe restricted", "«rk_live_{a40}»"),
    ("stripe hook", "STRIPE_WEBHOOK=«whsec_{a32}»"),
    ("openai", "OPENAI_API_KEY=«sk-proj-{w74}T3BlbkFJ{w74}»"),
    ("openai old", "openai.api_key = \"«sk-{a20}T3BlbkFJ{a20}»\""),
    (
        "anthropic",
        "export ANTHROPIC_API_KEY=«sk-ant-api03-{w93}AA»",
    ),
    (
        "google api",
        "https://maps.googleapis.com/maps/api/js?key=«AIza{w35}»",
    ),
    ("google oauth", "client_secret: «GOCSPX-{w28}»"),
    ("google access", "Authorization: Bearer «ya29.{w120}»"),
    ("google refresh", "\"refresh_token\": \"«1//0{w60}»\""),
    ("npm", "//registry.npmjs.org/:_authToken=«npm_{a36}»"),
    ("pypi", "password = «pypi-AgEIcHlwaS5vcmc{w120}»"),
    ("huggingface", "HF_TOKEN: «hf_{a34}»"),
    ("sendgrid", "SENDGRID_API_KEY=«SG.{w22}.{w43}»"),
    ("twilio", "TWILIO_API_KEY=«SK{h32}»"),
    ("twilio auth", "TWILIO_AUTH_TOKEN=«{h32}»"),
    (
        "mailgun",
        "curl --user 'api:«key-{h32}»' https://api.mailgun.net/v3",
    ),
    ("mailchimp", "MAILCHIMP_KEY=«{h32}-us12»"),
    (
        "telegram",
        "https://api.telegram.org/bot«{d10}:AA{w33}»/getMe",
    ),
    (
        "discord hook",
        "https://discord.com/api/webhooks/123456789012345678/«{w68}»",
    ),
    (
        "azure storage",
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=«{b86}==»;EndpointSuffix=core.windows.net",
    ),
    ("azure client", "AZURE_CLIENT_SECRET=«{a3}8Q~{a34}»"),
    (
        "azure sas",
        "https://acme.blob.core.windows.net/c?sv=2022-11-02&ss=b&sig=«{a40}%3D»",
    ),
    ("azure devops", "AZURE_DEVOPS_PAT=«{l52}»"),
    ("digitalocean", "doctl auth init -t «dop_v1_{h64}»"),
    ("shopify", "X-Shopify-Access-Token: «shpat_{h32}»"),
    ("databricks", "DATABRICKS_TOKEN=«dapi{h32}»"),
    ("vault service", "VAULT_TOKEN=«hvs.{w95}»"),
    ("vault old", "vault login «s.{a24}»"),
    (
        "vault table",
        "Key                Value\n---                -----\ntoken              «s.{a24}»\ntoken_accessor     x",
    ),
    ("vault bare", "the root token was «s.{a24}» at that time"),
    ("vault unseal", "Unseal Key 1: «{b43}=»"),
    ("okta ssws", "Authorization: SSWS «00{w40}»"),
    ("okta name", "OKTA_API_TOKEN=«00{w40}»"),
    ("linear", "LINEAR_KEY=«lin_api_{a40}»"),
    ("notion", "notion: «ntn_{d11}{a35}»"),
    ("grafana", "Authorization: Bearer «glsa_{a32}_{h8}»"),
    ("grafana old", "api key «eyJrIjoi{a80}»"),
    ("postman", "X-Api-Key: «PMAK-{h24}-{h34}»"),
    ("rubygems", ":rubygems_api_key: «rubygems_{h48}»"),
    ("doppler", "DOPPLER_TOKEN=«dp.pt.{a43}»"),
    ("planetscale", "password: «pscale_pw_{w43}»"),
    ("hubspot", "hubspot token «pat-na1-{uuid}»"),
    ("heroku", "HEROKU_API_KEY=«{uuid}»"),
    ("datadog", "DD_API_KEY=«{h32}»"),
    ("datadog name", "datadog: \"«{h40}»\""),
    ("newrelic license", "NEW_RELIC_LICENSE_KEY=«{h36}NRAL»"),
    ("newrelic user", "«NRAK-{A27}»"),
    (
        "sentry org",
        "sentry-cli --auth-token «sntrys_eyJpYXQiO{b80}_{b43}» releases",
    ),
    ("cloudflare", "CLOUDFLARE_API_TOKEN=«{w40}»"),
    ("cloudflare origin", "«v1.0-{h24}-{h146}»"),
    (
        "cloudflare tunnel",
        "cloudflared service install «eyJhIjoi{b120}In0=»",
    ),
    ("algolia", "ALGOLIA_ADMIN_KEY = \"«{h32}»\""),
    ("airtable", "Bearer «pat{a14}.{h64}»"),
    ("asana", "ASANA_TOKEN=«1/{d16}:{h32}»"),
    ("atlassian", "JIRA_TOKEN=«ATATT3{w186}»"),
    ("dockerhub", "docker login -u acme -p «dckr_pat_{w27}»"),
    ("figma", "X-Figma-Token: «figd_{w43}»"),
    ("fly", "FLY_API_TOKEN=«fm2_{b120}»"),
    ("jfrog", "curl -H 'X-JFrog-Art-Api: «AKCp{a69}»'"),
    ("harness", "HARNESS=«pat.{w22}.{a24}.{a20}»"),
    (
        "1password secret",
        "Secret Key: «A3-{A6}-{A11}-{A5}-{A5}-{A5}»",
    ),
    ("age", "# public key: age1xyz\n«AGE-SECRET-KEY-1{A58}»"),
    (
        "terraform cloud",
        "credentials \"app.terraform.io\" { token = \"«{a14}.atlasv1.{a67}»\" }",
    ),
    ("maxmind", "license: «{a6}_{a29}_mmk»"),
    ("infura", "https://mainnet.infura.io/v3/«{h32}»"),
    (
        "mapbox",
        "mapboxgl.accessToken = '«sk.eyJ1Ijoi{a60}.{a22}»'",
    ),
    ("lob", "LOB_API_KEY=«live_{h35}»"),
    ("square", "«EAAAE{w60}»"),
    ("facebook", "access_token=«EAAC{a120}»"),
    (
        "twitter bearer",
        "bearer «AAAAAAAAAAAAAAAAAAAAA{a50}%2B{a40}%3D{a10}»",
    ),
    ("firebase fcm", "key=«AAAA{w7}:APA91b{w134}»"),
    ("netlify", "NETLIFY_AUTH_TOKEN=«nfp_{a36}»"),
    ("vercel name", "VERCEL_TOKEN=«{a24}»"),
    ("snyk", "snyk auth «{uuid}»"),
    ("wandb", "wandb login «{h40}»"),
    ("ngrok", "ngrok config add-authtoken «{a27}_{a21}»"),
    (
        "kubeadm",
        "kubeadm join 10.0.0.1:6443 --token «{l6}.{l16}» --discovery-token-ca-cert-hash sha256:{h64}",
    ),
    ("telegram name", "telegram_token = '«{d9}:AA{w33}»'"),
    ("dropbox", "DROPBOX_TOKEN=«sl.{w135}»"),
    ("pulumi", "«pul-{h40}»"),
    (
        "tailscale",
        "tailscale up --authkey «tskey-auth-{a12}CNTRL-{a32}»",
    ),
    ("groq", "«gsk_{a52}»"),
    ("replicate", "«r8_{a37}»"),
    ("nuget", "nuget push a.nupkg -ApiKey «oy2{l43}»"),
    ("crates", "cargo login «cio{a32}»"),
    ("sonar", "mvn sonar:sonar -Dsonar.token=«squ_{h40}»"),
    ("adobe", "«p8e-{l32}»"),
    ("openshift", "oc login --token=«sha256~{w43}»"),
    ("rancher", "bearer_token: «token-{l5}:{l54}»"),
    ("artifactory ref", "«cmVmd{a59}»"),
    ("gitlab cookie", "_gitlab_session=«{h32}»"),
    ("sidekiq", "BUNDLE_ENTERPRISE__CONTRIBSYS__COM=«{h8}:{h8}»"),
    ("amazon mws", "«amzn.mws.{uuid}»"),
    ("wireguard", "[Interface]\nPrivateKey = «{b43}=»"),
    ("wordpress salt", "define( 'AUTH_SALT', '«{P60}»' );"),
    ("django", "SECRET_KEY = '«django-insecure-{P40}»'"),
    ("rails", "secret_key_base: «{h128}»"),
    ("laravel", "APP_KEY=«base64:{b43}=»"),
    ("ethereum", "PRIVATE_KEY=«0x{h64}»"),
    (
        "totp",
        "otpauth://totp/acme:jane?secret=«{U32}»&issuer=acme",
    ),
];

/// Passwords by what they stand behind.
pub(crate) const PASSWORDS: &[Kind] = &[
    ("env password", "DB_PASSWORD=«{p12}»"),
    ("env plain", "export MYSQL_PWD=«{m10}»"),
    ("pgpassword", "PGPASSWORD=«{m10}» psql -h db -U app"),
    (
        "yaml password",
        "database:\n  user: app\n  password: «{P14}»\n  port: 5432",
    ),
    (
        "yaml block",
        "database:\n  user: app\n  password: |\n    «{P20}»\n  port: 5432",
    ),
    ("yaml folded", "spec:\n  token: >-\n    «{a40}»\n  name: x"),
    ("yaml quoted", "smtp_password: \"«{P14}»\""),
    (
        "json password",
        "{\"user\": \"app\", \"password\": \"«{P14}»\", \"port\": 5432}",
    ),
    (
        "json pass",
        "{\"auth\": {\"user\": \"app\", \"pass\": \"«{p12}»\"}}",
    ),
    (
        "json double",
        "{\"body\": \"{\\\"password\\\": \\\"«{a14}9»\\\"}\"}",
    ),
    (
        "docker auth",
        "{\"auths\": {\"https://index.docker.io/v1/\": {\"auth\": \"«{b64 acme:}»\"}}}",
    ),
    (
        "docker auth yaml",
        "auths:\n  ghcr.io:\n    auth: «{b64 robot:}»",
    ),
    (
        "docker config json",
        ".dockerconfigjson: «{b64 {\"auths\":{\"ghcr.io\":{\"username\":\"a\",\"password\":\"b\",\"auth\":\"}»",
    ),
    (
        "docker login",
        "docker login -u acme -p «{P14}» registry.example.org",
    ),
    (
        "docker login glued",
        "docker login -u acme -p«{p12}» ghcr.io",
    ),
    (
        "docker login long",
        "docker login --username acme --password «{p12}»",
    ),
    (
        "docker stdin",
        "echo «{P16}» | docker login -u acme --password-stdin",
    ),
    ("redis cli", "redis-cli -h cache -a «{p12}» ping"),
    ("redis conf", "requirepass «{P20}»"),
    ("redis auth", "AUTH «{p14}»"),
    ("mysql glued", "mysql -u root -p«{m12}» shop < dump.sql"),
    ("mysqldump", "mysqldump --user=root --password=«{p12}» shop"),
    (
        "curl user",
        "curl -u admin:«{p12}» https://nexus.example.org/x",
    ),
    (
        "curl user long",
        "curl --user \"admin:«{P14}»\" https://nexus.example.org/x",
    ),
    ("sshpass", "sshpass -p «{p12}» ssh root@host"),
    ("sshpass quoted", "sshpass -p '«{P14}»' scp a b:"),
    (
        "ldapsearch",
        "ldapsearch -x -D cn=admin,dc=x -w «{p12}» -b dc=x",
    ),
    ("sqlcmd", "sqlcmd -S db -U sa -P «{P14}» -Q 'select 1'"),
    (
        "mongo",
        "mongosh --host db -u root -p «{p12}» --authenticationDatabase admin",
    ),
    (
        "openssl pass",
        "openssl rsa -in k.pem -passin pass:«{p12}» -out o.pem",
    ),
    (
        "keytool",
        "keytool -list -keystore a.jks -storepass «{p12}»",
    ),
    ("7z", "7z x backup.7z -p«{p12}»"),
    ("smbclient", "smbclient //nas/x -U 'jane%«{p12}»'"),
    ("net use", "net use z: \\\\nas\\x /user:jane «{p12}»"),
    ("net user", "net user jane «{p12}» /add"),
    ("cmdkey", "cmdkey /add:nas /user:jane /pass:«{p12}»"),
    ("htpasswd", "htpasswd -bc .htpasswd jane «{p12}»"),
    ("htpasswd file", "jane:«$apr1${a8}${a22}»"),
    ("bcrypt", "admin:«$2y$10${a53}»"),
    ("shadow", "root:«$6${a16}${a86}»:19000:0:99999:7:::"),
    ("chpasswd", "echo 'jane:«{p12}»' | chpasswd"),
    ("sudo stdin", "echo '«{p12}»' | sudo -S apt update"),
    ("sql password", "CREATE USER app WITH PASSWORD '«{P14}»';"),
    (
        "sql alter",
        "ALTER ROLE app WITH LOGIN ENCRYPTED PASSWORD '«{m12}»';",
    ),
    (
        "sql identified",
        "CREATE USER 'app'@'%' IDENTIFIED BY '«{p12}»';",
    ),
    (
        "sql identified with",
        "ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '«{p12}»';",
    ),
    ("sql set", "SET PASSWORD FOR 'app'@'%' = '«{p12}»';"),
    ("sql login", "CREATE LOGIN app WITH PASSWORD = '«{P14}»';"),
    (
        "xml password",
        "<server><id>nexus</id><username>ci</username><password>«{P14}»</password></server>",
    ),
    ("xml api key", "<string name=\"api_key\">«{a32}»</string>"),
    (
        "xml attribute",
        "<user username=\"tomcat\" password=\"«{p12}»\" roles=\"manager-gui\"/>",
    ),
    (
        "xml add",
        "<add key=\"ClearTextPassword\" value=\"«{P14}»\" />",
    ),
    (
        "xml property",
        "<property name=\"hibernate.connection.password\">«{p12}»</property>",
    ),
    ("plist", "<key>Password</key>\n<string>«{p12}»</string>"),
    (
        "wsse",
        "<wsse:Password Type=\"http://x#PasswordText\">«{p12}»</wsse:Password>",
    ),
    (
        "netrc",
        "machine api.example.org login jane password «{p12}»",
    ),
    (
        "netrc lines",
        "machine api.example.org\n  login jane\n  password «{p12}»",
    ),
    ("pgpass", "db.example.org:5432:shop:app:«{p12}»"),
    ("git credentials", "https://jane:«{P12}»@git.example.org"),
    (
        "url postgres",
        "DATABASE_URL=postgres://app:«{m12}»@db:5432/shop",
    ),
    ("url redis", "redis://:«{p12}»@cache:6379/0"),
    ("url amqp", "amqp://guest1:«{a20}»@mq:5672/"),
    (
        "url mongo",
        "mongodb+srv://app:«{a16}»@cluster0.x.mongodb.net/test?retryWrites=true",
    ),
    (
        "jdbc",
        "jdbc:sqlserver://db:1433;databaseName=x;user=sa;password=«{a12}7!»;encrypt=true",
    ),
    ("jdbc query", "jdbc:mysql://db/x?user=app&password=«{m12}»"),
    ("odbc", "Driver={ODBC};Server=db;Uid=sa;Pwd=«{a12}9»;"),
    ("npmrc auth", "//npm.example.org/:_auth=«{b64 ci:}»"),
    (
        "npmrc password",
        "//npm.example.org/:_password=\"«{b64 pw}»\"",
    ),
    ("pypirc", "[pypi]\nusername = jane\npassword = «{p14}»"),
    ("basic header", "Authorization: Basic «{b64 jane:}»"),
    (
        "bearer header",
        "curl -H \"Authorization: Bearer «{a40}»\" https://x",
    ),
    ("bearer opaque", "-H 'authorization: Bearer «{w60}»'"),
    ("proxy auth", "Proxy-Authorization: Basic «{b64 proxy:}»"),
    ("api key header", "X-API-Key: «{h32}»"),
    ("cookie", "Cookie: session=«{a32}»; theme=dark"),
    (
        "set cookie",
        "Set-Cookie: JSESSIONID=«{A32}»; Path=/; HttpOnly",
    ),
    ("cookie curl", "curl -b 'PHPSESSID=«{l26}»' https://x"),
    (
        "jwt",
        "token: «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0{a30}.{w43}»",
    ),
    ("jwt base64", "secret: «ZXlKaGJHY2lPaUpJVXpJ{a90}»"),
    (
        "k8s secret",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  username: YWRtaW4=\n  db-pass: «{b64 pw}»",
    ),
    (
        "k8s secret dump",
        "apiVersion: v1\ndata:\n  config: «{b64 top}»\n  tls: «{b64 key}»\nkind: Secret\nmetadata:\n  name: db",
    ),
    (
        "k8s string data",
        "kind: Secret\nstringData:\n  connection: «{P20}»",
    ),
    (
        "k8s literal",
        "kubectl create secret generic db --from-literal=password=«{p12}»",
    ),
    (
        "kubeconfig token",
        "users:\n- name: admin\n  user:\n    token: «{a60}»",
    ),
    ("powershell", "$env:API_TOKEN = \"«{a30}»\""),
    (
        "powershell secure",
        "ConvertTo-SecureString \"«{p12}»\" -AsPlainText -Force",
    ),
    (
        "powershell flag",
        "New-LocalUser -Name jane -Password «{p12}»",
    ),
    ("cmd set", "set DB_PASSWORD=«{p12}»"),
    ("setx", "setx DB_PASSWORD «{p12}»"),
    ("fish", "set -gx API_TOKEN «{a30}»"),
    ("csh", "setenv DB_PASSWORD «{p12}»"),
    ("flag password", "app --password «{p12}» start"),
    ("flag token", "app --token=«{a24}» start"),
    ("flag list", "args: [\"--password\", \"«{p12}»\"]"),
    ("flag secret", "app --client-secret '«{P20}»'"),
    (
        "docker run env",
        "docker run -e POSTGRES_PASSWORD=«{m12}» postgres:16",
    ),
    (
        "heredoc",
        "cat > .env <<EOF\nAPP_NAME=x\nAPP_SECRET=«{a32}»\nEOF",
    ),
    ("hcl heredoc", "password = <<EOT\n«{P20}»\nEOT"),
    (
        "terraform",
        "resource \"aws_db_instance\" \"x\" {\n  username = \"app\"\n  password = \"«{P14}»\"\n}",
    ),
    ("tfvars", "db_password = \"«{m12}»\""),
    ("ansible", "ansible_become_pass: «{p12}»"),
    ("php array", "'password' => '«{p12}»',"),
    ("php define", "define('DB_PASSWORD', '«{p12}»');"),
    (
        "python dict",
        "conn = connect(host='db', password='«{p12}»')",
    ),
    ("ruby symbol", ":password => \"«{p12}»\""),
    ("go struct", "Config{User: \"app\", Password: \"«{p12}»\"}"),
    (
        "java setter",
        "props.setProperty(\"db.password\", \"«{p12}»\");",
    ),
    (
        "net credential",
        "new NetworkCredential(\"jane\", \"«{P14}»\")",
    ),
    ("properties", "spring.datasource.password=«{p12}»"),
    (
        "jaas",
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"app\" password=\"«{p12}»\";",
    ),
    ("ini colon", "password : «{p12}»"),
    ("prose", "The password is «{p12}» for now."),
    ("prompt", "Password: «{p12}»"),
    ("next line", "Your new password:\n\n    «{P16}»\n"),
    (
        "csv users",
        "username,password,email\njane,«{p12}»,jane@example.org\njoe,«{p12}»,joe@example.org",
    ),
    (
        "markdown table",
        "| user | password | role |\n|---|---|---|\n| jane | «{p12}» | admin |",
    ),
    (
        "psql table",
        " user | password\n------+------------\n jane | «{p12}»\n(1 row)",
    ),
    ("wpa", "wpa_passphrase=«{m12}»"),
    ("nmcli", "nmcli dev wifi connect home password «{p12}»"),
    (
        "form body",
        "curl -d 'grant_type=password&username=jane&password=«{m12}»' https://x/token",
    ),
    ("url encoded", "body=%7B%22password%22%3A%22«{a14}»%22%7D"),
    ("query token", "GET /x?access_token=«{a32}»&page=2 HTTP/1.1"),
    (
        "mnemonic",
        "mnemonic: «witch collapse practice feed shame open despair creek road again ice least»",
    ),
    (
        "tsig",
        "key \"ddns\" { algorithm hmac-sha256; secret \"«{b43}=»\"; };",
    ),
    ("rabbit", "rabbitmqctl add_user app «{p12}»"),
    ("httpie", "http -a jane:«{p12}» GET https://x"),
    ("wget", "wget --user=jane --password='«{P14}»' https://x"),
    (
        "git config header",
        "http.https://github.com/.extraheader=AUTHORIZATION: basic «{b64 x-access-token:}»",
    ),
    ("unzip", "unzip -P «{p12}» a.zip"),
    (
        "zip url token",
        "pip install --index-url https://__token__:«{a32}»@pypi.example.org/simple x",
    ),
    (
        "azure login",
        "az login --service-principal -u {uuid} -p «{P34}» --tenant {uuid}",
    ),
    (
        "gpg passphrase",
        "gpg --batch --passphrase «{p14}» -d a.gpg",
    ),
    ("mysql config", "[client]\nuser=root\npassword=«{p12}»"),
    (
        "connection string",
        "Server=db;Database=x;User Id=sa;Password=«{a10}5;»",
    ),
];

/// Keys of several lines.
pub(crate) const BLOCKS: &[Kind] = &[
    ("pem rsa", "«{pem RSA PRIVATE KEY}»"),
    ("pem pkcs8", "«{pem PRIVATE KEY}»"),
    ("pem ec", "«{pem EC PRIVATE KEY}»"),
    ("pem openssh", "«{pem OPENSSH PRIVATE KEY}»"),
    ("pem encrypted", "«{pem ENCRYPTED PRIVATE KEY}»"),
    ("pem pgp", "«{pem PGP PRIVATE KEY BLOCK}»"),
    (
        "pem dsa",
        "$ cat id_dsa\n«{pem DSA PRIVATE KEY}»\n$ ls\na b c",
    ),
    ("pem yaml", "tls.key: |\n  «{pem PRIVATE KEY}»"),
    (
        "openvpn",
        "-----BEGIN OpenVPN Static key V1-----\n«{h32}»\n«{h32}»\n«{h32}»\n«{h32}»\n-----END OpenVPN Static key V1-----",
    ),
    (
        "ppk",
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 2\nAAAAC3NzaC1lZDI1NTE5AAAAI{b44}\n{b20}\nPrivate-Lines: 2\n«{b64}»\n«{b42}==»\nPrivate-MAC: {h64}",
    ),
    (
        "kubeconfig key",
        "    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t{b200}\n    client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF{b400}»",
    ),
    (
        "kubeconfig pkcs8",
        "client-key-data: «LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV2{b400}==»",
    ),
    (
        "service account",
        "{\"type\": \"service_account\", \"private_key\": \"-----BEGIN PRIVATE KEY-----\\n«{b64}»\\n«{b64}»\\n«{b30}==»\\n-----END PRIVATE KEY-----\\n\", \"client_email\": \"x@y\"}",
    ),
    (
        "jwk",
        "{\"kty\":\"RSA\",\"kid\":\"1\",\"n\":\"{w342}\",\"e\":\"AQAB\",\"d\":\"«{w342}»\",\"p\":\"«{w171}»\"}",
    ),
    (
        "jwk okp",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"{w43}\",\"d\":\"«{w43}»\"}",
    ),
    (
        "minisign",
        "untrusted comment: minisign encrypted secret key\n«RWRTY0Iy{b200}=»",
    ),
    (
        "java string",
        "String key = \"-----BEGIN PRIVATE KEY-----\\n\" +\n    \"«{b64}»\\n\" +\n    \"«{b64}»\\n\" +\n    \"-----END PRIVATE KEY-----\";",
    ),
];

/// Kinds that were written down after the patterns, and measured before anything was changed for them.
pub(crate) const LATER: &[Kind] = &[
    (
        "env file block",
        "NODE_ENV=production\nSESSION_SECRET=«{a48}»\nPORT=3000\nJWT_SECRET=«{P32}»",
    ),
    (
        "compose yaml",
        "services:\n  db:\n    environment:\n      POSTGRES_USER: app\n      POSTGRES_PASSWORD: «{m14}»\n      POSTGRES_DB: shop",
    ),
    (
        "compose list",
        "    environment:\n      - MYSQL_ROOT_PASSWORD=«{p12}»\n      - MYSQL_DATABASE=x",
    ),
    (
        "docker inspect",
        "            \"Env\": [\n                \"PATH=/usr/bin\",\n                \"DB_PASSWORD=«{p12}»\"\n            ],",
    ),
    (
        "printenv",
        "HOME=/root\nGITHUB_TOKEN=«ghp_{a36}»\nSHELL=/bin/bash\nAWS_SECRET_ACCESS_KEY=«{b40}»",
    ),
    (
        "git remote",
        "origin\thttps://oauth2:«glpat-{w20}»@gitlab.example.org/a/b.git (fetch)",
    ),
    (
        "git push error",
        "fatal: unable to access 'https://jane:«{a40}»@github.example.org/a/b.git/': The requested URL returned error: 403",
    ),
    (
        "requests trace",
        "send: b'GET / HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer «{a48}»\\r\\n\\r\\n'",
    ),
    (
        "curl verbose",
        "> GET /user HTTP/2\n> Host: api.example.org\n> authorization: token «{h40}»\n> accept: */*",
    ),
    (
        "curl verbose basic",
        "> Authorization: Basic «{b64 admin:}»",
    ),
    (
        "http headers json",
        "{'User-Agent': 'x', 'X-Api-Key': '«{a32}»', 'Accept': '*/*'}",
    ),
    (
        "python error",
        "KeyError: 'x' in {'api_key': '«{a32}»', 'id': 1}",
    ),
    (
        "stack dump",
        "RuntimeError: auth failed for Settings(host='x', password='«{p12}»', port=5432)",
    ),
    (
        "sqlalchemy",
        "sqlalchemy.exc.OperationalError: (psycopg2) postgresql+psycopg2://app:«{m12}»@db:5432/shop",
    ),
    (
        "alembic url",
        "sqlalchemy.url = mysql+pymysql://root:«{a14}5»@127.0.0.1/shop",
    ),
    (
        "celery broker",
        "broker: redis://default:«{a20}»@redis-1.example.org:6379",
    ),
    (
        "smtp url",
        "MAILER_DSN=smtp://postmaster:«{a24}»@smtp.example.org:587",
    ),
    (
        "cloudinary",
        "CLOUDINARY_URL=cloudinary://123456789012345:«{w27}»@acme",
    ),
    (
        "sentry dsn",
        "SENTRY_DSN=https://«{h32}»@o123456.ingest.sentry.io/7654321",
    ),
    ("elastic", "ELASTIC_PASSWORD=«{w20}»\nKIBANA_PORT=5601"),
    (
        "grafana ini",
        "[security]\nadmin_user = admin\nadmin_password = «{p12}»",
    ),
    ("rabbit conf", "default_user = app\ndefault_pass = «{p14}»"),
    (
        "application yaml",
        "spring:\n  datasource:\n    username: app\n    password: '«{P14}»'",
    ),
    (
        "appsettings",
        "\"ConnectionStrings\": { \"Default\": \"Server=tcp:x.database.windows.net;User ID=app;Password=«{a12}3!»;\" }",
    ),
    (
        "web config",
        "<add name=\"Db\" connectionString=\"Data Source=db;Initial Catalog=x;User Id=sa;Password=«{a12}4#»\" />",
    ),
    (
        "settings xml",
        "    <server>\n      <id>releases</id>\n      <username>ci</username>\n      <password>«{p14}»</password>\n    </server>",
    ),
    (
        "gradle properties",
        "signing.keyId=24875D73\nsigning.password=«{p12}»\nossrhPassword=«{P14}»",
    ),
    (
        "android",
        "storePassword «{m12}»\nkeyAlias release\nkeyPassword «{m12}»",
    ),
    (
        "google services",
        "\"api_key\": [ { \"current_key\": \"«AIza{w35}»\" } ]",
    ),
    (
        "firebase config",
        "const firebaseConfig = { apiKey: \"«AIza{w35}»\", projectId: \"acme\" };",
    ),
    (
        "supabase",
        "SUPABASE_SERVICE_ROLE_KEY=«eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZSIs{a80}.{w43}»",
    ),
    ("nextauth", "NEXTAUTH_SECRET=\"«{b43}=»\""),
    (
        "stripe cli",
        "> Ready! Your webhook signing secret is «whsec_{h64}» (^C to quit)",
    ),
    (
        "aws sts json",
        "{\n    \"Credentials\": {\n        \"AccessKeyId\": \"«ASIA{U16}»\",\n        \"SecretAccessKey\": \"«{b40}»\",\n        \"SessionToken\": \"«IQoJb3JpZ2luX2Vj{b300}»\"\n    }\n}",
    ),
    (
        "aws credentials file",
        "[default]\naws_access_key_id = «AKIA{U16}»\naws_secret_access_key = «{b40}»",
    ),
    (
        "aws table",
        "|  AccessKeyId      |  «AKIA{U16}»                      |\n|  SecretAccessKey  |  «{b40}»  |",
    ),
    (
        "aws export",
        "export AWS_ACCESS_KEY_ID=\"«AKIA{U16}»\" AWS_SECRET_ACCESS_KEY=\"«{b40}»\"",
    ),
    (
        "presigned",
        "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=900&X-Amz-Signature=«{h64}»",
    ),
    (
        "az sp json",
        "{ \"appId\": \"{uuid}\", \"displayName\": \"x\", \"password\": \"«{a3}8Q~{a34}»\", \"tenant\": \"{uuid}\" }",
    ),
    (
        "gcloud print token",
        "$ gcloud auth print-access-token\n«ya29.{w180}»",
    ),
    ("gh auth status", "  ✓ Token: «gho_{a36}»"),
    (
        "npm whoami",
        "npm config set //registry.npmjs.org/:_authToken «npm_{a36}»",
    ),
    ("yarn berry", "npmAuthToken: \"«{uuid}»\""),
    (
        "pip conf",
        "[global]\nindex-url = https://ci:«{a24}»@pypi.example.org/simple",
    ),
    (
        "poetry",
        "poetry config pypi-token.pypi «pypi-AgEIcHlwaS5vcmc{w150}»",
    ),
    (
        "twine",
        "twine upload -u __token__ -p «pypi-AgEIcHlwaS5vcmc{w150}» dist/*",
    ),
    (
        "helm set",
        "helm upgrade x chart --set auth.password=«{m12}» --set image.tag=1",
    ),
    (
        "kubectl token",
        "kubectl --token=«eyJhbGciOiJSUzI1NiIsImtpZCI6{a30}.{a200}.{w342}» get pods",
    ),
    (
        "kubectl decode",
        "$ kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\npassword: «{P16}»",
    ),
    (
        "kubectl describe json",
        "{\"apiVersion\":\"v1\",\"data\":{\"tls.crt\":\"«{b60}»\",\"pw\":\"«{b64 pw}»\"},\"kind\":\"Secret\"}",
    ),
    (
        "vault kv",
        "====== Data ======\nKey         Value\n---         -----\npassword    «{P16}»\nusername    app",
    ),
    (
        "vault json",
        "{\"auth\": {\"client_token\": \"«hvs.{w95}»\", \"accessor\": \"x\"}}",
    ),
    ("vault export", "export VAULT_TOKEN='«s.{a24}»'"),
    (
        "terraform output",
        "db_password = \"«{P16}»\"\nendpoint = \"db.example.org\"",
    ),
    (
        "terraform state",
        "\"attributes\": { \"identifier\": \"x\", \"master_password\": \"«{P16}»\", \"port\": 3306 }",
    ),
    ("pulumi", "pulumi config set --secret dbPassword «{P16}»"),
    (
        "ansible inventory",
        "web1 ansible_host=10.0.0.5 ansible_user=root ansible_password=«{p12}»",
    ),
    (
        "ansible cli",
        "ansible all -m ping -e 'ansible_ssh_pass=«{p12}»'",
    ),
    (
        "chef",
        "default['mysql']['server_root_password'] = '«{p12}»'",
    ),
    (
        "puppet",
        "class { 'mysql::server': root_password => '«{p12}»' }",
    ),
    ("jenkins", "withCredentials: username=ci, password=«{a34}»"),
    ("circle env", "CIRCLE_TOKEN: «{h40}»"),
    ("travis secure", "TRAVIS_API_TOKEN=«{a22}»"),
    (
        "slack curl",
        "curl -F token=«xoxb-{d12}-{d13}-{a24}» https://slack.com/api/chat.postMessage",
    ),
    (
        "telegram curl",
        "curl -s \"https://api.telegram.org/bot«{d10}:AA{w33}»/sendMessage\" -d chat_id=1",
    ),
    (
        "ssh expect",
        "spawn ssh root@host\nexpect \"password:\"\nsend \"«{p12}»\\r\"",
    ),
    (
        "mysql cnf",
        "[mysqldump]\nuser=backup\npassword=\"«{P16}»\"",
    ),
    (
        "psql uri",
        "psql \"host=db port=5432 dbname=shop user=app password=«{m12}» sslmode=require\"",
    ),
    (
        "mongo shell",
        "db.createUser({ user: \"app\", pwd: \"«{p12}»\", roles: [] })",
    ),
    ("redis acl", "ACL SETUSER app on >«{a24}» ~* +@all"),
    (
        "redis conf rename",
        "masterauth «{a32}»\nrequirepass «{a32}»",
    ),
    ("mqtt", "mosquitto_pub -h mq -u app -P «{p12}» -t a -m b"),
    ("influx", "influx write --token «{w86}==» -b x"),
    ("wifi", "network={\n  ssid=\"home\"\n  psk=\"«{p12}»\"\n}"),
    ("wireguard psk", "PresharedKey = «{b43}=»"),
    ("ipsec", "10.0.0.1 10.0.0.2 : PSK \"«{a32}»\""),
    ("snmp", "snmpwalk -v3 -u app -A «{p12}» -X «{p12}» host"),
    (
        "openvpn auth",
        "auth-user-pass inline\n<auth-user-pass>\njane\n«{P16}»\n</auth-user-pass>",
    ),
    (
        "luks",
        "echo -n '«{P20}»' | cryptsetup luksOpen /dev/sdb x -",
    ),
    ("borg", "export BORG_PASSPHRASE='«{P20}»'"),
    ("restic", "RESTIC_PASSWORD=«{m16}» restic snapshots"),
    ("rclone", "pass = «{w40}»\nuser = jane"),
    ("s3cfg", "access_key = «AKIA{U16}»\nsecret_key = «{b40}»"),
    (
        "boto",
        "aws_access_key_id = '«AKIA{U16}»', aws_secret_access_key = '«{b40}»'",
    ),
    (
        "minio",
        "mc alias set local http://localhost:9000 admin «{a32}»",
    ),
    ("lftp", "lftp -u jane,«{p12}» ftp.example.org"),
    ("ftp url", "ftp://jane:«{p12}»@ftp.example.org/pub"),
    (
        "svn",
        "svn checkout --username jane --password «{p12}» https://svn.example.org/x",
    ),
    ("tower", "--vault-password=«{p12}»"),
    (
        "jwt in cookie",
        "Cookie: auth=«eyJhbGciOiJIUzI1NiJ9.eyJ1aWQiOjF9{a20}.{w43}»",
    ),
    (
        "oauth body",
        "{\"access_token\":\"«{w64}»\",\"token_type\":\"Bearer\",\"refresh_token\":\"«{w64}»\",\"expires_in\":3600}",
    ),
    (
        "oauth form",
        "client_id=abc&client_secret=«{a40}»&grant_type=client_credentials",
    ),
    (
        "saml",
        "<saml:AttributeValue>x</saml:AttributeValue><apiToken>«{a40}»</apiToken>",
    ),
    ("twilio pair", "ACCOUNT_SID=AC{h32}\nAUTH_TOKEN=«{h32}»"),
    (
        "rsa one line",
        "private_key = \"-----BEGIN RSA PRIVATE KEY-----\\n«{b64}»\\n«{b64}»\\n-----END RSA PRIVATE KEY-----\\n\"",
    ),
    (
        "key env",
        "PRIVATE_KEY=\"-----BEGIN PRIVATE KEY-----\n«{b64}»\n«{b64}»\n«{b24}=»\n-----END PRIVATE KEY-----\"",
    ),
    ("key diff", "-«{pem RSA PRIVATE KEY}»"),
    (
        "go test dump",
        "--- FAIL: TestX\n    x_test.go:12: got token \"«ghp_{a36}»\", want none",
    ),
    (
        "set password prose",
        "I have set the root password to «{p12}».",
    ),
    ("login prose", "log in as admin with password «{p12}»"),
    ("credentials list", "username: admin\npassword: «{m10}»"),
    ("credentials slash", "Login: admin / Password: «{p12}»"),
    ("bash read", "PASS='«{P16}»'; mysql -uroot -p\"$PASS\""),
    ("var pass", "db_pass = \"«{m12}»\""),
    ("ruby env", "ENV['STRIPE_SECRET'] = '«sk_test_{a24}»'"),
    (
        "js config",
        "module.exports = { secret: '«{a32}»', expiresIn: '1h' }",
    ),
    ("rust const", "const API_KEY: &str = \"«{a40}»\";"),
    (
        "java final",
        "private static final String PASSWORD = \"«{p12}»\";",
    ),
    ("go const", "const dbPassword = \"«{m12}»\""),
    (
        "csharp",
        "var client = new Client { ApiKey = \"«{a32}»\" };",
    ),
    ("toml", "[auth]\ntoken = \"«{a40}»\""),
    ("ini", "[database]\npass=«{m12}»"),
    (
        "bearer single",
        "curl -H 'Authorization: Bearer «{a40}»' https://x",
    ),
    (
        "bearer escaped",
        "curl -H \\\"Authorization: Bearer «{a40}»\\\" https://x",
    ),
    (
        "bearer python",
        "headers={\"Authorization\": \"Bearer «{a40}»\"}",
    ),
    (
        "bearer js",
        "headers: { 'Authorization': `Bearer «{w48}»` }",
    ),
    ("bearer yaml", "Authorization: 'Bearer «{a40}»'"),
    (
        "bearer go",
        "req.Header.Set(\"Authorization\", \"Bearer «{a40}»\")",
    ),
    ("basic python", "'Authorization': 'Basic «{b64 jane:}»'"),
    ("token header gh", "-H \"Authorization: token «{h40}»\""),
    (
        "private token",
        "curl --header \"PRIVATE-TOKEN: «{a20}»\" https://gitlab.example.org",
    ),
    ("job token", "JOB-TOKEN: «{a64}»"),
    ("x auth token", "X-Auth-Token: «{h32}»"),
    (
        "x vault token",
        "curl -H \"X-Vault-Token: «hvs.{a24}»\" http://v:8200",
    ),
    ("apikey header", "apikey: «{a40}»"),
    ("ocp key", "Ocp-Apim-Subscription-Key: «{h32}»"),
    ("functions key", "x-functions-key: «{w54}==»"),
    (
        "dd header",
        "DD-API-KEY: «{h32}»\nDD-APPLICATION-KEY: «{h40}»",
    ),
    ("circle header", "Circle-Token: «{h40}»"),
    (
        "csrf cookie",
        "cookie: csrftoken=«{a64}»; sessionid=«{l32}»",
    ),
    ("cookie connect", "Cookie: connect.sid=s%3A«{w32}».«{a43}»"),
    (
        "cookie jar",
        "example.org\tFALSE\t/\tTRUE\t0\tsession_token\t«{a40}»",
    ),
    ("dotenv quoted", "SECRET_KEY='«{P50}»'"),
    (
        "dotenv export",
        "export STRIPE_SECRET_KEY=\"«sk_live_{a99}»\"",
    ),
    ("dotenv spaced", "API_TOKEN = «{a32}»"),
    ("dotenv comment", "# DB_PASSWORD=«{p12}»"),
    ("mailtrap", "MAIL_PASSWORD=«{h14}»"),
    ("sendgrid smtp", "SMTP_PASS=«SG.{w22}.{w43}»"),
    ("s3 secret env", "S3_SECRET=«{b40}»"),
    ("spaces key", "SPACES_SECRET_ACCESS_KEY=«{b43}»"),
    ("minio env", "MINIO_ROOT_PASSWORD=«{p12}»"),
    (
        "gcp json inline",
        "{\"type\":\"authorized_user\",\"client_secret\":\"«GOCSPX-{w28}»\",\"refresh_token\":\"«1//0{w90}»\"}",
    ),
    (
        "tf provider",
        "provider \"cloudflare\" {\n  api_token = \"«{w40}»\"\n}",
    ),
    (
        "tf variable default",
        "variable \"db_password\" {\n  type    = string\n  default = \"«{P16}»\"\n}",
    ),
    (
        "tf sensitive plan",
        "      + password             = \"«{P16}»\"",
    ),
    (
        "tf plan change",
        "  ~ master_password = \"«{P16}»\" -> \"«{P16}»\"",
    ),
    (
        "ansible vars",
        "vars:\n  mysql_root_password: \"«{P14}»\"\n  db_user: app",
    ),
    (
        "ansible task",
        "mysql_user: name=app password=«{p12}» priv=*.*:ALL",
    ),
    (
        "npmrc legacy",
        "_auth = «{b64 ci:}»\nemail = ci@example.org",
    ),
    (
        "npmrc token uuid",
        "//registry.npmjs.org/:_authToken=«{uuid}»",
    ),
    (
        "pypirc two",
        "[distutils]\nindex-servers = x\n[x]\nrepository: https://x\nusername: ci\npassword: «{P16}»",
    ),
    ("gem credentials", "---\n:rubygems_api_key: «{h32}»"),
    ("cargo credentials", "[registry]\ntoken = \"«cio{a32}»\""),
    (
        "composer auth",
        "{\"http-basic\": {\"repo.example.org\": {\"username\": \"ci\", \"password\": \"«{p12}»\"}}}",
    ),
    (
        "composer github",
        "{\"github-oauth\": {\"github.com\": \"«ghp_{a36}»\"}}",
    ),
    ("nuget config", "<add key=\"Password\" value=\"«{P14}»\" />"),
    (
        "maven server",
        "<privateKey>«{a40}»</privateKey><passphrase>«{p14}»</passphrase>",
    ),
    (
        "docker config file",
        "{\n  \"auths\": {\n    \"ghcr.io\": {\n      \"auth\": \"«{b64 jane:}»\"\n    }\n  }\n}",
    ),
    (
        "docker build arg",
        "docker build --build-arg NPM_TOKEN=«npm_{a36}» .",
    ),
    ("dockerfile", "ENV DATABASE_PASSWORD=«{p12}»"),
    ("dockerfile spaced", "ENV DATABASE_PASSWORD «{p12}»"),
    (
        "kustomize",
        "secretGenerator:\n- name: db\n  literals:\n  - password=«{m12}»",
    ),
    (
        "helm values",
        "postgresql:\n  auth:\n    postgresPassword: «{P16}»",
    ),
    ("k8s env", "- name: DB_PASSWORD\n  value: \"«{P14}»\""),
    (
        "k8s secret get",
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    pw: «{b64 pw}»\n  kind: Secret\n  metadata:\n    name: x\nkind: List",
    ),
    (
        "kubeconfig user",
        "users:\n- name: x\n  user:\n    username: admin\n    password: «{a24}»",
    ),
    ("istio jwt", "jwt: «eyJhbGciOiJFUzI1NiJ9.{a60}.{w86}»"),
    ("pgp message key", "«{pem PGP PRIVATE KEY BLOCK}»\n"),
    (
        "age file",
        "# created: 2026-02-20T10:00:00Z\n# public key: age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n«AGE-SECRET-KEY-1{A58}»",
    ),
    (
        "openssh in json",
        "{\"ssh_key\": \"-----BEGIN OPENSSH PRIVATE KEY-----\\n«{b64}»\\n«{b64}»\\n«{b28}==»\\n-----END OPENSSH PRIVATE KEY-----\\n\"}",
    ),
    (
        "pem in yaml quoted",
        "key: \"-----BEGIN EC PRIVATE KEY-----\\n«{b64}»\\n«{b40}==»\\n-----END EC PRIVATE KEY-----\"",
    ),
    (
        "pem spaces",
        "-----BEGIN PRIVATE KEY----- «{b64}» «{b64}» «{b30}==» -----END PRIVATE KEY-----",
    ),
    (
        "pem one line",
        "-----BEGIN PRIVATE KEY-----«{b128}{b30}==»-----END PRIVATE KEY-----",
    ),
    (
        "pem list",
        "[\n  \"-----BEGIN PRIVATE KEY-----\",\n  \"«{b64}»\",\n  \"«{b64}»\",\n  \"-----END PRIVATE KEY-----\"\n]",
    ),
    (
        "pem headless",
        "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{H32}\n\n«{b64}»\n«{b64}»\n«{b30}==»\n-----END RSA PRIVATE KEY-----",
    ),
    ("p12 base64", "CERTIFICATE_P12_PASSWORD=«{p12}»"),
    (
        "powershell param",
        "Connect-AzAccount -Credential $c -Password '«{P14}»'",
    ),
    (
        "powershell hash",
        "@{ Username = 'app'; Password = '«{P14}»' }",
    ),
    (
        "powershell setx",
        "[Environment]::SetEnvironmentVariable('API_KEY', '«{a32}»', 'User')",
    ),
    ("powershell header", "-Headers @{ 'X-Api-Key' = '«{a32}»' }"),
    ("cmd set quoted", "set \"API_TOKEN=«{a32}»\""),
    ("cmd runas", "psexec \\\\srv -u admin -p «{p12}» cmd"),
    ("nushell", "$env.API_TOKEN = \"«{a32}»\""),
    (
        "inline env",
        "env API_TOKEN=«{a32}» SECRET=«{a32}» make test",
    ),
    ("sudo env", "sudo DB_PASSWORD=«{p12}» ./run.sh"),
    ("flag eq quoted", "--password=\"«{P14}»\""),
    ("flag short u", "mysqladmin -u root password '«{p12}»'"),
    ("flag api key", "app --api-key «{a32}» list"),
    ("flag auth token", "app --auth-token=«{w40}» list"),
    (
        "flag secret key",
        "s3cmd --access_key=«AKIA{U16}» --secret_key=«{b40}» ls",
    ),
    (
        "flag pass long",
        "pg_dump --dbname=postgresql://app:«{m12}»@db/x",
    ),
    ("pgadmin", "PGADMIN_DEFAULT_PASSWORD: «{m12}»"),
    (
        "heredoc netrc",
        "cat > ~/.netrc <<'EOF'\nmachine github.com\nlogin jane\npassword «ghp_{a36}»\nEOF",
    ),
    (
        "heredoc sql",
        "psql <<SQL\nALTER USER postgres PASSWORD '«{p12}»';\nSQL",
    ),
    (
        "heredoc json",
        "curl -d @- https://x <<EOF\n{\"email\":\"a@b.c\",\"password\":\"«{P14}»\"}\nEOF",
    ),
    ("tee env", "echo \"DB_PASSWORD=«{p12}»\" >> .env"),
    (
        "printf auth",
        "printf 'machine x login y password «{p12}»' > ~/.netrc",
    ),
    (
        "sed replace",
        "sed -i 's/DB_PASSWORD=.*/DB_PASSWORD=«{a14}»/' .env",
    ),
    ("gh secret", "gh secret set DEPLOY_TOKEN --body \"«{a40}»\""),
    ("heroku set", "heroku config:set SECRET_KEY_BASE=«{h128}»"),
    (
        "heroku config",
        "=== acme Config Vars\nDATABASE_URL:    postgres://u:«{h64}»@ec2.compute.amazonaws.com:5432/d\nSECRET_TOKEN:    «{h64}»",
    ),
    (
        "vercel env",
        "VERCEL_TOKEN=«{a24}» vercel deploy --token «{a24}»",
    ),
    (
        "aws ssm",
        "aws ssm put-parameter --name /prod/db_password --value \"«{P16}»\" --type SecureString",
    ),
    (
        "aws ssm get",
        "{\"Parameter\": {\"Name\": \"/prod/db_password\", \"Type\": \"SecureString\", \"Value\": \"«{P16}»\"}}",
    ),
    (
        "aws secretsmanager",
        "{\"Name\": \"db\", \"SecretString\": \"{\\\"username\\\":\\\"app\\\",\\\"password\\\":\\\"«{a16}3»\\\"}\"}",
    ),
    (
        "az keyvault",
        "az keyvault secret set --vault-name v --name DbPassword --value '«{P16}»'",
    ),
    (
        "az storage",
        "az storage blob list --account-name x --account-key «{b86}==»",
    ),
    (
        "cosmos",
        "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=«{b86}==»;",
    ),
    (
        "servicebus",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{b43}=»",
    ),
    (
        "gcloud key",
        "gcloud services api-keys get-key-string x\nkeyString: «AIza{w35}»",
    ),
    ("consul token", "CONSUL_HTTP_TOKEN=«{uuid}»"),
    ("nomad token", "Secret ID    = «{uuid}»"),
    ("mattermost", "mattermost_token: «{l26}»"),
    (
        "discord bot env",
        "DISCORD_TOKEN=«MTIzNDU2Nzg5MDEyMzQ1Njc4.{w6}.{w38}»",
    ),
    ("zoom", "ZOOM_CLIENT_SECRET=«{a32}»"),
    ("spotify", "SPOTIPY_CLIENT_SECRET='«{h32}»'"),
    ("twitter env", "TWITTER_ACCESS_TOKEN_SECRET=«{a45}»"),
    ("linkedin", "linkedin_client_secret: «{a16}»"),
    ("paypal", "PAYPAL_SECRET=«E{w79}»"),
    ("plaid", "PLAID_SECRET=«{h30}»"),
    ("coinbase", "COINBASE_API_SECRET=«{a32}»"),
    ("binance", "BINANCE_API_SECRET=«{a64}»"),
    ("openrouter", "OPENROUTER_API_KEY=«sk-or-v1-{h64}»"),
    ("mistral", "MISTRAL_API_KEY=«{a32}»"),
    ("cohere", "CO_API_KEY=«{a40}»"),
    ("deepseek", "DEEPSEEK_API_KEY=«sk-{h32}»"),
    ("perplexity", "«pplx-{a48}»"),
    ("elevenlabs", "ELEVEN_API_KEY=«sk_{h48}»"),
    ("langfuse", "LANGFUSE_SECRET_KEY=«sk-lf-{uuid}»"),
    ("pinecone", "«pcsk_{a6}_{a63}»"),
    ("supabase sbp", "«sbp_{h40}»"),
    (
        "neon url",
        "postgresql://neondb_owner:«npg_{a12}»@ep-x.eu-central-1.aws.neon.tech/neondb",
    ),
    ("upstash", "UPSTASH_REDIS_REST_TOKEN=\"«{a58}=»\""),
    (
        "turso",
        "TURSO_AUTH_TOKEN=«eyJhbGciOiJFZERTQSJ9.{a60}.{w86}»",
    ),
    ("clerk", "CLERK_SECRET_KEY=«sk_test_{a42}»"),
    ("auth0", "AUTH0_CLIENT_SECRET=«{w64}»"),
    ("resend", "RESEND_API_KEY=«re_{a8}_{a24}»"),
    ("postmark", "POSTMARK_SERVER_TOKEN=«{uuid}»"),
    ("loggly", "LOGGLY_TOKEN=«{uuid}»"),
    ("honeycomb", "HONEYCOMB_API_KEY=«{a22}»"),
    ("pagerduty", "PAGERDUTY_TOKEN=«u+{a18}»"),
    ("statuspage", "OAuth «{h64}»"),
    ("user pass colon", "ftp login jane:«{p12}» failed"),
];
