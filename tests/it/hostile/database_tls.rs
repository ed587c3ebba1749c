//! Servers that are not what they say: each asks for the password in its own way, and none of them gets it.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::postgres::server::{is_root, output, user};
use crate::support::{EVER, free_port};
use crate::workspace::{Ran, Workspace};

/// The password that nobody may get.
const PASSWORD: &str = "not-for-you-1b2c";

/// Requests of a server for a login: the bodies of its first message.
const CLEAR_TEXT: &[u8] = &[0, 0, 0, 3];
const MD5: &[u8] = &[0, 0, 0, 5, 1, 2, 3, 4];
const UNBOUND: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256\0\0";
const BOTH: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
const NOTHING: &[u8] = &[0, 0, 0, 0];

/// Answer to the request for TLS.
#[derive(Clone)]
enum Tls {
    Denied,
    With(Arc<ServerConfig>),
}

/// Bytes that a client has sent.
#[derive(Debug, Default)]
struct Heard {
    /// Whether it said who wants to log in.
    has_begun: bool,
    /// Everything after that: the answer to the question.
    answer: Vec<u8>,
}

/// A server that asks one question. Answers its port, and what each connection has said.
fn fake(tls: Tls, question: &'static [u8], address: IpAddr) -> (u16, Receiver<Heard>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut said = Heard::default();
            // Whoever hangs up has said enough.
            drop(converse(stream.unwrap(), &tls, question, &mut said));
            if tell.send(said).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

fn converse(
    mut stream: TcpStream,
    tls: &Tls,
    question: &[u8],
    said: &mut Heard,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    if u32::from_be_bytes(length) == 8 {
        stream.read_exact(&mut [0; 4])?;
        match tls {
            Tls::Denied => stream.write_all(b"N")?,
            Tls::With(config) => {
                stream.write_all(b"S")?;
                let session = ServerConnection::new(Arc::clone(config)).unwrap();
                let mut stream = StreamOwned::new(session, stream);
                stream.read_exact(&mut length)?;
                return ask(stream, length, question, said);
            }
        }
        stream.read_exact(&mut length)?;
    }
    ask(stream, length, question, said)
}

fn ask(
    mut stream: impl Read + Write,
    length: [u8; 4],
    question: &[u8],
    said: &mut Heard,
) -> std::io::Result<()> {
    let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut rest)?;
    said.has_begun = true;
    let length = u32::try_from(question.len() + 4).unwrap();
    stream.write_all(&[&b"R"[..], &length.to_be_bytes(), question].concat())?;
    stream.flush()?;
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        said.answer.extend_from_slice(&bytes[..count]);
        // An answer to the password ends it.
        if said.answer.first() == Some(&b'p') {
            return Ok(());
        }
    }
}

/// An authority, and certificates that it has signed.
struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// `None`, and said so, where nothing makes certificates.
    fn new(directory: &Path) -> Option<Self> {
        let authority = Self {
            directory: directory.to_owned(),
        };
        let made = authority.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=ca \
             -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem",
        );
        match made {
            Ok(_) => Some(authority),
            Err(reason) => {
                println!("skipped: no certificate: {reason}");
                None
            }
        }
    }

    fn openssl(&self, arguments: &str) -> Result<String, String> {
        let mut command = Command::new("openssl");
        output(
            command
                .args(arguments.split_whitespace())
                .current_dir(&self.directory),
        )
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A certificate for a host, for so many days from now.
    fn certificate(&self, name: &str, host: &str, days: i32) {
        std::fs::write(
            self.file("ext"),
            format!("subjectAltName={host}\nbasicConstraints=critical,CA:FALSE\n"),
        )
        .unwrap();
        for step in [
            format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server -keyout {name}.key -out {name}.csr"
            ),
            format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -extfile ext -out {name}.pem"
            ),
        ] {
            self.openssl(&step).unwrap();
        }
    }

    fn tls(&self, name: &str) -> Tls {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(self.file(&format!("{name}.pem"))).unwrap()],
                PrivateKeyDer::from_pem_file(self.file(&format!("{name}.key"))).unwrap(),
            )
            .unwrap();
        Tls::With(Arc::new(config))
    }
}

fn status(workspace: &Workspace, host: &str, port: u16, parameters: &str) -> Ran {
    let url = format!("postgres://ann:{PASSWORD}@{host}:{port}/memory{parameters}");
    workspace.run(&["remote", "status", "--url", &url])
}

#[test]
fn no_server_gets_the_password_by_asking_for_it() {
    let mut workspace = Workspace::empty();
    let Some(authority) = Authority::new(&workspace.home()) else {
        return;
    };
    authority.certificate("good", "DNS:localhost", 30);
    authority.certificate("elsewhere", "DNS:elsewhere.example", 30);
    authority.certificate("expired", "DNS:localhost", -1);
    let ca = authority.file("ca.pem").display().to_string();
    let trusted = format!("&sslrootcert={ca}");
    let (good, elsewhere, expired) = (
        || authority.tls("good"),
        || authority.tls("elsewhere"),
        || authority.tls("expired"),
    );
    let denied = || Tls::Denied;
    let full = format!("?sslmode=verify-full{trusted}");
    let (certificate, unbound) = ("certificate", "does not bind the login");
    let (asked, no_tls) = ("MD5 hash; it was not sent", "does not support TLS");
    // The server, its question, the URL's options; what is said, and whether it hears who wants to log in.
    let cases: [(Tls, &'static [u8], &str, &str, bool); 18] = [
        // Nobody verifies whom: encrypted, and not known.
        (good(), CLEAR_TEXT, "?sslmode=require", unbound, true),
        (good(), MD5, "?sslmode=require", unbound, true),
        (good(), UNBOUND, "?sslmode=require", unbound, true),
        (good(), NOTHING, "?sslmode=require", unbound, true),
        (denied(), CLEAR_TEXT, "?sslmode=require", no_tls, false),
        // Without TLS, on this machine and because the URL says so.
        (denied(), CLEAR_TEXT, "", asked, true),
        (denied(), MD5, "", asked, true),
        (denied(), NOTHING, "", "has not proven", true),
        (denied(), CLEAR_TEXT, "?sslmode=disable", asked, true),
        // Verified, and all the same nothing is given away unasked.
        (good(), CLEAR_TEXT, &full, unbound, true),
        (good(), MD5, &full, unbound, true),
        (good(), NOTHING, &full, unbound, true),
        (good(), UNBOUND, &full, unbound, true),
        (denied(), CLEAR_TEXT, &full, no_tls, false),
        // Somebody else's certificate, an old one, and one that this system knows nothing of.
        (elsewhere(), CLEAR_TEXT, &full, certificate, false),
        (expired(), CLEAR_TEXT, &full, certificate, false),
        (
            good(),
            CLEAR_TEXT,
            "?sslmode=verify-full",
            certificate,
            false,
        ),
        // Not a word of PostgreSQL.
        (denied(), b"no", "", "cannot reach", true),
    ];
    for (tls, question, options, said, begins) in cases {
        let (port, heard) = fake(tls, question, IpAddr::from([127, 0, 0, 1]));
        // A socket of a name may have two addresses; the server has one.
        let ran = status(&workspace, "localhost", port, options);
        assert_eq!(ran.code, 6, "{options} {said} {ran:?}");
        assert!(ran.stderr.contains(said), "{options} {said} {ran:?}");
        assert!(ran.stderr.contains("hint"), "{ran:?}");
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!text.contains(PASSWORD), "{ran:?}");
        let heard = heard.recv_timeout(EVER).unwrap();
        assert_eq!(heard.has_begun, begins, "{options} {said} {heard:?}");
        // Not the password, and nothing that was made of it.
        assert_eq!(heard.answer, b"", "{options} {said}");
    }

    // A server that another system trusts is trusted where this one does.
    workspace.set("SSL_CERT_FILE", &ca);
    let (port, heard) = fake(good(), CLEAR_TEXT, IpAddr::from([127, 0, 0, 1]));
    let ran = status(&workspace, "localhost", port, "?sslmode=verify-full");
    assert!(ran.stderr.contains(unbound), "{ran:?}");
    assert!(heard.recv().unwrap().has_begun);
}

#[test]
fn a_password_is_given_away_only_by_a_url_that_says_so() {
    let workspace = Workspace::empty();
    let Some(authority) = Authority::new(&workspace.home()) else {
        return;
    };
    authority.certificate("good", "DNS:localhost", 30);
    let full = format!(
        "?sslmode=verify-full&sslrootcert={}",
        authority.file("ca.pem").display()
    );
    let good = || authority.tls("good");
    let here = IpAddr::from([127, 0, 0, 1]);
    // So the servers of these tests would hear it.
    for (tls, question, options, expected) in [
        (
            good(),
            CLEAR_TEXT,
            format!("{full}&channel_binding=prefer"),
            PASSWORD,
        ),
        (
            good(),
            MD5,
            format!("{full}&channel_binding=disable"),
            "md5",
        ),
        (
            good(),
            UNBOUND,
            format!("{full}&channel_binding=prefer"),
            "y,,n=,r=",
        ),
        (good(), BOTH, full.clone(), "p=tls-server-end-point,,n=,r="),
        (
            good(),
            BOTH,
            "?sslmode=require".to_owned(),
            "p=tls-server-end-point,,n=,r=",
        ),
        (Tls::Denied, UNBOUND, String::new(), "n,,n=,r="),
    ] {
        let (port, heard) = fake(tls, question, here);
        let ran = status(&workspace, "localhost", port, &options);
        assert_eq!(ran.code, 6, "{options} {ran:?}");
        let heard = heard.recv_timeout(EVER).unwrap();
        let answer = String::from_utf8_lossy(&heard.answer).into_owned();
        assert!(answer.contains(expected), "{options} {answer:?}");
    }
    // And these say so in vain: nobody would know who hears it.
    for options in [
        "?sslmode=require&channel_binding=prefer",
        "?sslmode=require&channel_binding=disable",
        "?sslmode=disable&channel_binding=require",
    ] {
        let ran = status(&workspace, "db.example", 1, options);
        assert_eq!(ran.code, 2, "{options} {ran:?}");
        assert!(ran.stderr.contains("verify-full"), "{ran:?}");
    }
}

#[test]
fn another_machine_has_to_show_its_certificate() {
    // An address of this machine that is not a loopback one stands for another machine.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let address = socket
        .connect("192.0.2.1:9")
        .and_then(|()| socket.local_addr());
    let Some(address) = address
        .ok()
        .map(|at| at.ip())
        .filter(|at| !at.is_loopback())
    else {
        println!("skipped: this machine has no address but its own");
        return;
    };
    let workspace = Workspace::empty();
    let Some(authority) = Authority::new(&workspace.home()) else {
        return;
    };
    authority.certificate("good", &format!("IP:{address}"), 30);
    let ca = authority.file("ca.pem").display().to_string();
    let host = address.to_string();
    for (tls, options, said, begins) in [
        (Tls::Denied, String::new(), "does not support TLS", false),
        (authority.tls("good"), String::new(), "certificate", false),
        (
            authority.tls("good"),
            format!("?sslrootcert={ca}"),
            "does not bind the login",
            true,
        ),
        (
            Tls::Denied,
            "?sslmode=disable".to_owned(),
            "in clear text",
            true,
        ),
    ] {
        let (port, heard) = fake(tls, CLEAR_TEXT, address);
        let ran = status(&workspace, &host, port, &options);
        assert_eq!(ran.code, 6, "{options} {ran:?}");
        assert!(ran.stderr.contains(said), "{options} {said} {ran:?}");
        let heard = heard.recv_timeout(EVER).unwrap();
        assert_eq!(
            (heard.has_begun, heard.answer),
            (begins, Vec::new()),
            "{options}"
        );
    }
}

#[test]
fn a_server_that_says_nothing_is_left() {
    let workspace = Workspace::empty();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let begun = Instant::now();
    let ran = status(&workspace, "127.0.0.1", port, "?connect_timeout=2");
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.stderr.contains("no answer within 2 s"), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_mins(1));
}

/// A real PostgreSQL that speaks TLS. The one that the other tests run has been built without.
struct RealServer {
    _data: TempDir,
    process: Child,
    port: u16,
}

impl Drop for RealServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl RealServer {
    fn start(authority: &Authority) -> Result<Self, String> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").map_err(|e| e.to_string())?;
        let mut programs = versions.flatten().map(|entry| entry.path().join("bin"));
        let programs = programs
            .find(|bin| bin.join("postgres").is_file())
            .ok_or("no PostgreSQL is installed")?;
        let home = tempfile::tempdir().map_err(|e| e.to_string())?;
        let data = home.path().join("data");
        let file = |name: &str| home.path().join(name);
        for name in ["server.key", "server.pem"] {
            std::fs::copy(authority.file(name), file(name)).map_err(|e| e.to_string())?;
        }
        std::fs::write(file("password"), PASSWORD).map_err(|e| e.to_string())?;
        std::fs::write(
            file("hba"),
            "hostssl all strong all scram-sha-256\nhostssl all old all md5\nhostssl all open all trust\n\
             hostssl all asked all password\nhost all all all scram-sha-256\n",
        )
        .map_err(|e| e.to_string())?;
        if is_root() {
            output(
                Command::new("chown")
                    .args(["-R", "nobody"])
                    .arg(home.path()),
            )?;
        }
        output(
            user("sh", Path::new("/"))
                .args(["-c", "chmod 600 \"$0\"; umask 077; \"$1\"/initdb -D \"$2\" -U postgres -A scram-sha-256 --pwfile \"$3\" -N -E UTF8 --locale C"])
                .args([file("server.key"), programs.clone(), data.clone(), file("password")]),
        )?;
        let port = free_port();
        let setting = |name: &str, value: &Path| format!("{name}={}", value.display());
        let mut command = user(programs.join("postgres").to_str().unwrap(), Path::new("/"));
        command
            .arg("-D")
            .arg(&data)
            .args([
                "-p",
                &port.to_string(),
                "-k",
                "",
                "-c",
                "fsync=off",
                "-c",
                "ssl=on",
            ])
            .args(["-c", &setting("ssl_key_file", &file("server.key"))])
            .args(["-c", &setting("ssl_cert_file", &file("server.pem"))])
            .args(["-c", &setting("hba_file", &file("hba"))])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = Self {
            process: command.spawn().map_err(|e| e.to_string())?,
            port,
            _data: home,
        };
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("it does not start".to_owned())
    }
}

#[test]
fn a_real_server_with_a_certificate_is_reached() {
    let workspace = Workspace::empty();
    let Some(authority) = Authority::new(&workspace.home()) else {
        return;
    };
    authority.certificate("server", "DNS:localhost", 30);
    let server = match RealServer::start(&authority) {
        Ok(server) => server,
        Err(reason) => {
            println!("skipped: no PostgreSQL with TLS: {reason}");
            return;
        }
    };
    let ca = authority.file("ca.pem").display().to_string();
    let full = format!("?sslmode=verify-full&sslrootcert={ca}");
    let run = |user: &str, host: &str, options: &str| {
        let port = server.port;
        let url = format!("postgres://{user}:{PASSWORD}@{host}:{port}/postgres{options}");
        workspace.run(&["remote", "status", "--url", &url])
    };
    // It lets us in, and is no store of ours; it starts in the meantime.
    let inside = "has no memctl schema";
    let begun = Instant::now();
    while !run("postgres", "localhost", &full).stderr.contains(inside) {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{:?}",
            run("postgres", "localhost", &full)
        );
    }
    // Roles with each kind of login, made as an administrator makes them.
    let sql = format!(
        "create role strong login password '{PASSWORD}'; create role open login password '{PASSWORD}';
         create role asked login password '{PASSWORD}';
         set password_encryption = 'md5'; create role old login password '{PASSWORD}'"
    );
    crate::postgres::Client::connect(&format!(
        "postgres://postgres:{PASSWORD}@127.0.0.1:{}/postgres?sslmode=disable",
        server.port
    ))
    .run(&sql);
    for (user, host, options, said) in [
        ("strong", "localhost", full.clone(), inside),
        ("strong", "localhost", format!("?sslrootcert={ca}"), inside),
        ("strong", "localhost", "?sslmode=require".to_owned(), inside),
        ("strong", "localhost", String::new(), inside),
        (
            "postgres",
            "127.0.0.1",
            "?sslmode=disable".to_owned(),
            inside,
        ),
        ("strong", "127.0.0.1", full.clone(), "certificate"),
        (
            "strong",
            "localhost",
            "?sslmode=verify-full".to_owned(),
            "certificate",
        ),
        ("old", "localhost", full.clone(), "does not bind the login"),
        (
            "old",
            "localhost",
            format!("{full}&channel_binding=prefer"),
            inside,
        ),
        (
            "asked",
            "localhost",
            full.clone(),
            "does not bind the login",
        ),
        (
            "asked",
            "localhost",
            format!("{full}&channel_binding=prefer"),
            inside,
        ),
        ("open", "localhost", full.clone(), "does not bind the login"),
        (
            "open",
            "localhost",
            format!("{full}&channel_binding=prefer"),
            inside,
        ),
    ] {
        let ran = run(user, host, &options);
        assert_eq!(ran.code, 6, "{user} {options} {ran:?}");
        assert!(ran.stderr.contains(said), "{user} {options} {said} {ran:?}");
    }
}
