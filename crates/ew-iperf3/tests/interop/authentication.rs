//! RSA credentials, both directions.

use crate::common::{
    OurServer, TheirServer, iperf3_is_there, options, our_client, our_client_with,
    their_client_with,
};
use ew_iperf3::auth::{ClientAuth, Padding, ServerAuth};
use ew_iperf3::report::Report;
use ew_iperf3::server::ServerOptions;
use ew_iperf3::wire::params::{End, Params};
use rsa::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};
use sha2::{Digest, Sha256};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

const USER: &str = "mario";
const PASSWORD: &str = "rossi!";

/// Keys and a list of users in files.
struct Secrets {
    _folder: tempfile::TempDir,
    private: PathBuf,
    public: PathBuf,
    users: PathBuf,
}

impl Secrets {
    fn new() -> Self {
        use rand_chacha::rand_core::SeedableRng;
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name);
        let mut random = rand_chacha::ChaCha20Rng::from_seed([7; 32]);
        let key = rsa::RsaPrivateKey::new(&mut random, 2048).unwrap();
        let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
        fs::write(path_of("private.pem"), pem.as_bytes()).unwrap();
        let pem = key
            .to_public_key()
            .to_public_key_pem(LineEnding::LF)
            .unwrap();
        fs::write(path_of("public.pem"), pem).unwrap();
        let hash = Sha256::digest(format!("{{{USER}}}{PASSWORD}"));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(
            path_of("users.csv"),
            format!("# who may\n\nother,00\n{USER},{hash}\r\n"),
        )
        .unwrap();
        Self {
            private: path_of("private.pem"),
            public: path_of("public.pem"),
            users: path_of("users.csv"),
            _folder: folder,
        }
    }

    fn server(&self, padding: Padding) -> OurServer {
        let auth = ServerAuth::new(&self.private, &self.users, 10, padding).unwrap();
        let options = ServerOptions {
            auth: Some(auth),
            ..ServerOptions::default()
        };
        OurServer::start_with(([127, 0, 0, 1], 0).into(), options)
    }

    fn client(&self, password: &str, padding: Padding) -> ClientAuth {
        ClientAuth::new(USER, password, &self.public, padding).unwrap()
    }

    fn ask(&self, server: SocketAddr, password: &str, padding: Padding) -> Report {
        let mut options = options(server, short());
        options.auth = Some(self.client(password, padding));
        our_client_with(&options)
    }
}

fn short() -> Params {
    Params {
        end: End::Bytes(100_000),
        bits_per_sec: 20_000_000,
        ..Params::default()
    }
}

#[test]
fn their_client_proves_itself_to_our_server() {
    if !iperf3_is_there() {
        return;
    }
    let secrets = Secrets::new();
    // Debian's 3.12 knows no other padding.
    let server = secrets.server(Padding::Pkcs1);
    let public = secrets.public.display();
    let arguments = format!("-n 100000 --username {USER} --rsa-public-key-path {public}");
    let with =
        |password| their_client_with(server.address, &arguments, &[("IPERF3_PASSWORD", password)]);
    let reported = with(PASSWORD);
    assert!(reported.success, "{}", reported.text);
    let reported = with("wrong");
    assert!(
        reported.text.contains("test authorization failed"),
        "{}",
        reported.text
    );
    let reported = their_client_with(server.address, "-n 100000", &[]);
    assert!(
        reported.text.contains("test authorization failed"),
        "{}",
        reported.text
    );
}

#[test]
fn our_client_proves_itself_to_their_server() {
    if !iperf3_is_there() {
        return;
    }
    let secrets = Secrets::new();
    let private = secrets.private.display().to_string();
    let users = secrets.users.display().to_string();
    let arguments = [
        "--rsa-private-key-path",
        &private,
        "--authorized-users-path",
        &users,
    ];
    // One for each: between two tests it listens anew, and closes what connects meanwhile.
    let ask = |password| {
        let server = TheirServer::start(&arguments);
        secrets.ask(server.address(), password, Padding::Pkcs1)
    };
    assert_eq!(ask(PASSWORD).error, None);
    let report = ask("wrong");
    let error = report.error.unwrap();
    // Debian's 3.12 just closes.
    assert!(
        error.contains("test authorization failed") || error.contains("user and password"),
        "{error}"
    );
}

#[test]
fn both_paddings_between_our_own() {
    let secrets = Secrets::new();
    for padding in [Padding::Oaep, Padding::Pkcs1] {
        let server = secrets.server(padding);
        assert_eq!(secrets.ask(server.address, PASSWORD, padding).error, None);
        let other = match padding {
            Padding::Oaep => Padding::Pkcs1,
            Padding::Pkcs1 => Padding::Oaep,
        };
        let failed = Some("test authorization failed");
        let report = secrets.ask(server.address, PASSWORD, other);
        assert_eq!(report.error.as_deref(), failed);
        let report = secrets.ask(server.address, "wrong", padding);
        assert_eq!(report.error.as_deref(), failed);
        assert_eq!(our_client(server.address, short()).error.as_deref(), failed);
    }
}

#[test]
fn tokens_that_once_corrupted_memory_are_no_proof() {
    let secrets = Secrets::new();
    let server = secrets.server(Padding::Oaep);
    // CVE-2025-54349, CVE-2025-54350 and what followed them: over-long, malformed, nothing but
    // padding.
    let long = "A".repeat(7000);
    for token in ["=", "==", "A", "AAAA", "\n", "€", "AA=A", &long] {
        let params = Params {
            auth_token: token.into(),
            ..short()
        };
        let report = our_client(server.address, params);
        let failed = Some("test authorization failed");
        assert_eq!(report.error.as_deref(), failed, "{token}");
    }
}

#[test]
fn a_token_is_good_for_a_few_seconds_and_its_user_only() {
    let secrets = Secrets::new();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let server = ServerAuth::new(&secrets.private, &secrets.users, 10, Padding::Oaep).unwrap();
    let token = secrets.client(PASSWORD, Padding::Oaep).token(now).unwrap();
    let believed_at = |time| {
        let identity = server.check(&token, time).unwrap();
        assert_eq!(identity.user, USER);
        identity.believed
    };
    assert!(believed_at(now) && believed_at(now + 10) && believed_at(now - 10));
    assert!(!believed_at(now + 11) && !believed_at(now - 11));
    let spaces = ClientAuth::new("a b", "c d", &secrets.public, Padding::Oaep).unwrap();
    let identity = server.check(&spaces.token(now).unwrap(), now).unwrap();
    assert_eq!((identity.user.as_str(), identity.believed), ("a b", false));
    let long = "x".repeat(300);
    let long = ClientAuth::new(&long, "", &secrets.public, Padding::Oaep).unwrap();
    assert!(long.token(now).is_err());
}

#[test]
fn files_that_are_no_keys_are_named() {
    let secrets = Secrets::new();
    let error = ServerAuth::new(&secrets.public, &secrets.users, 10, Padding::Oaep);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("no private RSA key")
    );
    let error = ClientAuth::new(USER, "", &secrets.users, Padding::Oaep);
    assert!(error.unwrap_err().to_string().contains("no public RSA key"));
    let missing = PathBuf::from("/nonexistent/key.pem");
    let error = ClientAuth::new(USER, "", &missing, Padding::Oaep);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("/nonexistent/key.pem")
    );
}
