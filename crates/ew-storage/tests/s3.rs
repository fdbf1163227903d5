//! The S3 back end against a real S3 server (s3s-fs) on loopback, and against one that is
//! overloaded.
#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

use bytes::Bytes;
use ew_storage::{Backend, Content, ReadOrder, S3Backend, S3Credentials, S3Target};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// More than two parts, the last one not full.
const OBJECT_BYTES: usize = (40 << 20) + 12_345;
const BUCKET: &str = "bench";

/// A server on a port of its own, until the test process ends.
fn serve() -> (SocketAddr, TempDir) {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join(BUCKET)).unwrap();
    let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root.path()).unwrap());
    builder.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = builder.build();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let served =
                    http1::Builder::new().serve_connection(TokioIo::new(socket), service.clone());
                tokio::spawn(served);
            }
        });
    });
    (address, root)
}

fn credentials(secret: &str) -> S3Credentials {
    S3Credentials {
        key: "key".into(),
        secret: secret.into(),
        token: None,
    }
}

fn backend(address: SocketAddr, bucket: &str, secret: &str) -> S3Backend {
    let target = format!("{bucket}/some/prefix?endpoint=http://{address}&region=eu-1");
    let target = S3Target::parse(&target).unwrap();
    S3Backend::open(&target, credentials(secret)).unwrap()
}

fn content(file: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Content::new(3, file).fill(0, &mut bytes);
    bytes
}

fn write(backend: &S3Backend, name: &str, bytes: &[u8]) {
    let mut writing = backend.create(name).unwrap();
    bytes
        .chunks(1_000_000)
        .for_each(|chunk| writing.write(Bytes::copy_from_slice(chunk)).unwrap());
    writing.close().unwrap();
}

#[test]
fn objects_are_written_listed_read_and_removed() {
    let (address, root) = serve();
    let backend = backend(address, BUCKET, "secret");
    backend.prepare().unwrap();
    let (large, small) = (content(0, OBJECT_BYTES), content(1, 5000));
    write(&backend, "test_io_0", &large);
    write(&backend, "test_io_1", &small);
    let mut names = backend.list().unwrap();
    names.sort();
    assert_eq!(names, ["test_io_0", "test_io_1"]);
    let folder = root.path().join(BUCKET).join("some/prefix/eastwest-dfsio");
    assert_eq!(
        std::fs::read(folder.join("test_io_1")).unwrap(),
        small,
        "path style"
    );

    let mut reading = backend.open("test_io_0", ReadOrder::Sequential).unwrap();
    let mut buffer = vec![0; 3_000_000];
    let mut offset = 0;
    loop {
        let found = reading.read(offset, &mut buffer).unwrap();
        Content::new(3, 0).check(offset, &buffer[..found]).unwrap();
        offset += found as u64;
        if found < buffer.len() {
            break;
        }
    }
    reading.close().unwrap();
    assert_eq!(offset, OBJECT_BYTES as u64);
    let mut random = backend.open("test_io_0", ReadOrder::Random).unwrap();
    for offset in [30_000_000, 7] {
        assert_eq!(random.read(offset, &mut buffer[..4096]).unwrap(), 4096);
        Content::new(3, 0).check(offset, &buffer[..4096]).unwrap();
    }
    // Somebody put another object there.
    write(&backend, "test_io_0", &small);
    let mut reading = backend.open("test_io_0", ReadOrder::Sequential).unwrap();
    let found = reading.read(0, &mut buffer).unwrap();
    let wrong = Content::new(3, 0).check(0, &buffer[..found]).unwrap_err();
    assert!(wrong.found.ends_with("offset 0 of file 1"), "{wrong:?}");

    backend.remove("test_io_0").unwrap();
    backend.remove("test_io_1").unwrap();
    assert!(backend.list().unwrap().is_empty());
    let gone = backend.open("test_io_0", ReadOrder::Random).err().unwrap();
    assert!(gone.is_not_found(), "{gone}");
    assert!(backend.append("test_io_0").is_err());
}

#[test]
fn a_wrong_secret_and_a_missing_bucket_are_named() {
    let (address, _root) = serve();
    let error = backend(address, BUCKET, "wrong").prepare().unwrap_err();
    assert!(error.to_string().contains("access denied"), "{error}");
    let error = backend(address, "nowhere", "secret").prepare().unwrap_err();
    let words = error.to_string();
    assert!(words.contains("s3://nowhere"), "{words}");
}

/// A server that answers 503 so often, then that the bucket is empty.
fn overloaded(times: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    const EMPTY: &str = "<?xml version=\"1.0\"?><ListBucketResult><Name>bench</Name><IsTruncated>false</IsTruncated></ListBucketResult>";
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = [0; 8192];
            let _ = socket.read(&mut request).unwrap();
            let (status, body) = match count.fetch_add(1, Ordering::SeqCst) < times {
                true => ("503 Slow Down", "<Error><Code>SlowDown</Code></Error>"),
                false => ("200 OK", EMPTY),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    (address, asked)
}

#[test]
fn a_busy_server_is_asked_again_and_then_named() {
    let (address, asked) = overloaded(2);
    backend(address, BUCKET, "secret").prepare().unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let (address, asked) = overloaded(usize::MAX);
    let error = backend(address, BUCKET, "secret").prepare().unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("503") && words.contains("SlowDown"),
        "{words}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 6, "{words}");
}

/// A server of one object, whose second half comes when the client has waited so long.
fn slow(object: &'static [u8], pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 8192];
        let _ = socket.read(&mut request).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"1\"\r\nLast-Modified: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\n",
            object.len()
        );
        let (first, second) = object.split_at(object.len() / 2);
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(first).unwrap();
        thread::sleep(pause);
        socket.write_all(second).unwrap();
    });
    address
}

/// The library's limit on a whole request is 30 s by default.
#[test]
fn an_object_may_take_longer_than_half_a_minute() {
    let object = b"what a busy server sends";
    let backend = backend(slow(object, Duration::from_secs(31)), BUCKET, "secret");
    let mut reading = backend.open("test_io_0", ReadOrder::Sequential).unwrap();
    let mut found = vec![0; object.len()];
    assert_eq!(reading.read(0, &mut found).unwrap(), object.len());
    assert_eq!(found, object);
}
