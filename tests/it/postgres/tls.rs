//! The way to the server: a front that speaks TLS stands before it, with a certificate for `localhost`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{Store, done};

/// Makes a key and a certificate for `localhost`; `false`, and said so, where nothing can.
fn certificate(directory: &Path, name: &str) -> Option<(PathBuf, PathBuf)> {
    let (key, certificate) = (
        directory.join(format!("{name}.key")),
        directory.join(format!("{name}.pem")),
    );
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-days", "2", "-subj"])
        .arg(format!("/CN={name}"))
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    match made {
        Ok(output) if output.status.success() => Some((key, certificate)),
        other => {
            println!("skipped: no certificate: {other:?}");
            None
        }
    }
}

/// Takes connections as a server with TLS does, and passes what is said on to one without.
fn front(key: &Path, certificate: &Path, to: u16) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(certificate).unwrap()],
            PrivateKeyDer::from_pem_file(key).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((mut client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut asked = [0; 8];
                    client.read_exact(&mut asked).await?;
                    client.write_all(b"S").await?;
                    let mut client = acceptor.accept(client).await?;
                    let mut server = TcpStream::connect(("127.0.0.1", to)).await?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
    });
    receiver.recv().unwrap()
}

#[test]
fn a_connection_is_as_secure_as_it_says() {
    let Some(store) = Store::new() else { return };
    let directory = store.workspace.root();
    let Some((key, ours)) = certificate(&directory, "ours") else {
        return;
    };
    let Some((_, other)) = certificate(&directory, "other") else {
        return;
    };
    let (ours, other) = (ours.display(), other.display());
    let port = front(&key, Path::new(&ours.to_string()), store.database.port());
    let plain = format!("127.0.0.1:{}", store.database.port());
    let url = |host: &str, parameters: &str| {
        store
            .database
            .url
            .replace(&plain, &format!("{host}:{port}"))
            + parameters
    };
    for (url, connection) in [
        (store.database.url.clone(), "plain"),
        // TLS ends at the front, so no login through it is bound to the channel.
        (
            url(
                "localhost",
                &format!("?sslmode=verify-full&channel_binding=prefer&sslrootcert={ours}"),
            ),
            "verified",
        ),
        (
            url(
                "localhost",
                &format!("?channel_binding=disable&sslrootcert={ours}"),
            ),
            "verified",
        ),
    ] {
        let ran = store
            .workspace
            .run(&["remote", "status", "--json", "--url", &url]);
        assert_eq!(done(&ran)["connection"], connection, "{url}");
    }
    for (url, said) in [
        (
            url("127.0.0.1", "?sslmode=require"),
            "does not bind the login",
        ),
        (
            url("localhost", &format!("?sslrootcert={ours}")),
            "does not bind the login",
        ),
        // Not for this host; by nobody whom the system, or this file, trusts; no file at all.
        (
            url(
                "127.0.0.1",
                &format!("?sslmode=verify-full&sslrootcert={ours}"),
            ),
            "certificate",
        ),
        (url("localhost", "?sslmode=verify-full"), "certificate"),
        (
            url(
                "localhost",
                &format!("?sslmode=require&sslrootcert={other}"),
            ),
            "certificate",
        ),
        (
            url("localhost", "?sslrootcert=nowhere.pem"),
            "no secure connection",
        ),
        (
            url(
                "localhost",
                &format!("?sslrootcert={}", directory.join("ours.key").display()),
            ),
            "it holds no certificate",
        ),
        // Nor does anything go on in plain text where it was to be encrypted.
        (store.database.url.clone() + "?sslmode=require", "TLS"),
    ] {
        let ran = store.workspace.run(&["remote", "status", "--url", &url]);
        ran.fails(6, said);
    }
}
