//! Command-line arguments that are passwords, keys or tokens.

use super::Detector::Command;
use super::Flag::{Alone, Behind, Glued, Last, Next, Prefix};
use super::{Flag, Pattern, pattern};

const fn command(
    finds: &'static str,
    programs: &'static [&'static str],
    words: &'static [&'static str],
    flags: &'static [Flag],
    yes: &'static [&'static str],
    no: &'static [&'static str],
) -> Pattern {
    pattern("password", finds, programs, Command(words, flags), yes, no)
}

/// Programs, required words (one of them must be among the arguments), secret arguments, samples.
#[rustfmt::skip]
pub(super) const COMMANDS: &[Pattern] = &[
    command("Clients of MySQL", &["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlsh", "mariadb", "mariadb-dump", "mycli"], &[], &[Glued("-p")],
        &["mysql -u root -p«{m12}» shop"], &["mysql -u root -p", "mysql -u root -p$PW shop", "mysql -P 3306"]),
    command("sshpass", &["sshpass"], &[], &[Next("-p"), Glued("-p")], &["sshpass -p «{p12}» ssh h", "sshpass -p'«{p12}»' ssh h"], &["sshpass -e ssh h", "sshpass -p \"$PW\" ssh h"]),
    command("Logins of registries and clouds", &["docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "crane", "regctl", "az ", "oc ", "cf ", "twine", "ibmcloud", "argocd", "dotnet"], &["login", "upload", "source"],
        &[Next("-p"), Glued("-p"), Next("--password")], &["docker login -u a -p «{P14}» ghcr.io", "az login --service-principal -u x -p «{P34}»"], &["docker run -p 8080:80 nginx", "docker login -u a -p $TOKEN"]),
    command("Clients of Redis", &["redis-cli", "redis-benchmark", "valkey-cli", "keydb-cli"], &[], &[Next("-a"), Next("--pass")], &["redis-cli -h c -a «{p12}» ping"], &["redis-cli -a $PW ping", "redis-cli -a with the password"]),
    command("Logins in sessions of Redis", &["AUTH", "HELLO 3 AUTH"], &[], &[Alone], &["AUTH «{p14}»", "127.0.0.1:6379> AUTH app «{p16}»"], &["AUTH required", "the AUTH header of version 2 of it", "AUTH: 1 of 2"]),
    command("Clients of HTTP", &["curl", "wget", "http ", "https ", "xh ", "httpie", "curlie", "aria2c", "lftp"], &[],
        &[Behind("-u", b':'), Behind("--user", b':'), Behind("--proxy-user", b':'), Behind("-U", b':'), Behind("-a", b':'), Behind("--auth", b':'), Behind("-b", b'='), Behind("--cookie", b'='), Next("--oauth2-bearer"), Next("--pass")],
        &["curl -u admin:«{p12}» https://x", "http -a jane:«{p12}» GET x", "curl -b 'PHPSESSID=«{l26}»' x"], &["curl -u user:password https://x", "curl -u \"$U:$P\" https://x", "curl -b cookies.txt x"]),
    command("Clients of LDAP", &["ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldappasswd", "ldapwhoami", "kadmin"], &[], &[Next("-w"), Next("-s")], &["ldapsearch -x -w «{p12}» -b dc=x"], &["ldapsearch -x -W -s base"]),
    command("Clients of other databases", &["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "cypher-shell", "cqlsh", "sqlcmd", "bcp ", "isql ", "clickhouse-client", "arangosh", "influx", "rabbitmqadmin", "mosquitto_pub", "mosquitto_sub", "ipmitool"], &[],
        &[Next("-p"), Next("-P"), Glued("-P"), Next("-password")], &["sqlcmd -S db -U sa -P «{P14}» -Q x", "mongosh -u root -p «{p12}» x"], &["mongosh --port 27017 -p", "mosquitto_pub -p 1883 -t x"]),
    command("Passphrases of SSH keys", &["ssh-keygen", "ssh-add"], &[], &[Next("-N"), Next("-P")], &["ssh-keygen -t ed25519 -N «{p12}» -f k", "ssh-keygen -p -P '«{p12}»' -f k"], &["ssh-keygen -t ed25519 -N \"\" -f k", "ssh-keygen -N \"$PW\" -f k"]),
    command("Archives", &["zip ", "unzip", "7z ", "7za ", "7zz ", "rar ", "unrar"], &[], &[Next("-P"), Glued("-p"), Glued("-hp")], &["unzip -P «{p12}» a.zip", "7z x a.7z -p«{p12}»"], &["unzip -p a.zip x", "zip -r a.zip src"]),
    command("OpenSSL and signing of Android", &["openssl", "apksigner"], &[], &[Prefix("pass:"), Next("-k")], &["openssl rsa -passin pass:«{p12}» -in k"], &["openssl rsa -passin env:PW", "openssl x509 -noout"]),
    command("Keystores of Java", &["keytool", "jarsigner"], &[], &[Next("-storepass"), Next("-keypass"), Next("-srcstorepass"), Next("-deststorepass")], &["keytool -storepass «{p12}» -list"], &["keytool -list -keystore a.jks"]),
    command("Clients of FTP", &["lftp", "ncftpget", "ncftpput"], &[], &[Behind("-u", b','), Next("-p")], &["lftp -u jane,«{p12}» h"], &["lftp -u jane h"]),
    command("Clients of Windows shares", &["smbclient", "rpcclient", "smbget", "smbmap"], &[], &[Behind("-U", b'%'), Behind("--user", b'%'), Next("-p")], &["smbclient //nas/x -U 'jane%«{p12}»'"], &["smbclient //nas/x -U jane"]),
    command("Users of Windows", &["net "], &["user", "use"], &[Last(2)], &["net user jane «{p12}» /add", "net use z: \\\\nas\\x /user:jane «{p12}»"], &["net use z: \\\\nas\\x", "net user jane *"]),
    command("Credentials of Windows", &["cmdkey", "xfreerdp", "mstsc", "psexec", "schtasks", "wmic", "winrs", "sc.exe"], &[], &[Prefix("/pass:"), Prefix("/p:"), Prefix("/password:"), Prefix("-p:"), Next("/rp"), Next("-p")], &["cmdkey /add:n /user:j /pass:«{p12}»"], &["cmdkey /list"]),
    command("Secure strings of PowerShell", &["ConvertTo-SecureString"], &["-AsPlainText", "-asplaintext"], &[Next("-String"), Last(0)], &["ConvertTo-SecureString \"«{p12}»\" -AsPlainText -Force"], &["ConvertTo-SecureString $pw -AsPlainText -Force", "ConvertTo-SecureString -String $pw"]),
    command("plink, pscp and putty", &["plink", "pscp", "psftp", "putty"], &[], &[Next("-pw")], &["plink -pw «{p12}» h"], &["plink -P 22 h"]),
    command("Tools of SNMP", &["snmpwalk", "snmpget", "snmpset", "snmpbulkwalk", "snmpbulkget", "snmptrap", "snmpstatus"], &[], &[Next("-A"), Next("-X")], &["snmpwalk -v3 -A «{p12}» h"], &["snmpwalk -v2c -Os h"]),
    command("Users of Redis", &["SETUSER", "setuser"], &[], &[Prefix(">")], &["ACL SETUSER app on >«{a24}» ~* +@all"], &["ACL SETUSER app on nopass ~*"]),
    command("Aliases of MinIO", &["mc "], &["alias", "config"], &[Last(4)], &["mc alias set local http://x:9000 admin «{a32}»"], &["mc alias list"]),
    command("htpasswd", &["htpasswd"], &["-b", "-bc", "-cb", "-bn", "-nb", "-bB", "-nbB", "-bnB", "-Bbn", "-cbB", "-bcB"], &[Last(1)], &["htpasswd -bc f jane «{p12}»"], &["htpasswd -c .htpasswd jane"]),
    command("Users of RabbitMQ", &["rabbitmqctl"], &["add_user", "change_password", "authenticate_user"], &[Last(2)], &["rabbitmqctl add_user app «{p12}»"], &["rabbitmqctl add_user app"]),
    command("Logins that take a token", &["vault", "wandb", "cargo", "ngrok", "snyk", "bw ", "doctl", "consul", "railway", "surge", "netlify", "vercel", "fly ", "flyctl", "nuget", "gem ", "codecov", "wpa_passphrase", "huggingface-cli", "hf ", "composer", "poetry"],
        &["login", "auth", "authtoken", "add-authtoken", "unlock", "push", "unseal", "config", "--token"], &[Last(1), Next("-t"), Next("--token"), Next("--auth"), Next("-k"), Next("-ApiKey"), Next("--api-key")],
        &["wandb login «{h40}»", "cargo login «{a40}»", "nuget push a.nupkg -k «{a46}»"], &["cargo login", "vault login -method=github", "vault auth enable userpass", "cargo add config"]),
    command("Keychains and notaries of macOS", &["security", "xcrun", "altool", "notarytool"], &["unlock-keychain", "create-keychain", "add-generic-password", "add-internet-password", "import", "set-key-partition-list", "altool", "notarytool"],
        &[Next("-p"), Next("-P"), Next("-w"), Next("-k"), Next("--password")], &["security unlock-keychain -p «{p12}» x.keychain"], &["security find-identity -p codesigning"]),
    command("Connections of NetworkManager", &["nmcli", "wpa_cli"], &[], &[Next("password"), Next("psk"), Next("wifi-sec.psk")], &["nmcli dev wifi connect home password «{p12}»"], &["nmcli dev wifi list"]),
    command("Clients of Oracle", &["sqlplus", "sqlldr", "expdp", "impdp", "rman"], &[], &[Behind("", b'/')], &["sqlplus app/«{p12}»@db"], &["sqlplus / as sysdba", "sqlplus /nolog"]),
    command("swaks and other mailers", &["swaks", "sendemail", "s-nail"], &[], &[Next("-ap"), Next("-xp"), Next("--auth-password")], &["swaks -au j -ap «{p12}» -t x"], &["swaks --to x"]),
];
