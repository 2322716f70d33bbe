//! Real sockets: what clients may leave undone, hanging up, the order of a shutdown, TLS, HTTP/2.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use kheya::{
    config::{ServeConfig, TlsFiles},
    domain::{RegionId, RequestId},
    http::{Phase, Server},
    protocol::CancelRequest,
    store::Store,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};

use crate::support::{Service, request};

/// A service that listens, and the ends of its shutdown.
struct Running {
    service: Service,
    address: SocketAddr,
    admin: Option<SocketAddr>,
    shutdown: oneshot::Sender<()>,
    finish: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn start(config: ServeConfig) -> Running {
    let listen = "127.0.0.1:0".parse().unwrap();
    let service = Service::with(ServeConfig { listen, ..config }, None);
    let server = Server::bind(service.app.clone()).await.unwrap();
    let (address, admin) = (server.local_addr(), server.admin_addr());
    let (shutdown, told) = oneshot::channel();
    let (finish, finished) = oneshot::channel();
    let run = server.run(async { drop(told.await) }, async { drop(finished.await) });
    let ended = tokio::spawn(run);
    Running {
        service,
        address,
        admin,
        shutdown,
        finish,
        ended,
    }
}

fn text(method: &str, path: &str, body: &str, close: bool) -> String {
    let connection = if close { "close" } else { "keep-alive" };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: kheya\r\nConnection: {connection}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, text: &str) -> (u16, String) {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

async fn call(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    exchange(stream, &text(method, path, body, true)).await
}

/// How long the server keeps a connection on which only `sent` arrives.
async fn patience(address: SocketAddr, sent: &str) -> Duration {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let started = Instant::now();
    let mut rest = Vec::new();
    // a reset ends the connection too
    let _ = stream.read_to_end(&mut rest).await;
    started.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_dawdles_is_not_waited_for() {
    let running = start(ServeConfig::default()).await;
    let dawdlers = [
        "",
        "P",
        "PRI * HT",
        "GET /livez HTTP/1.1\r\nHost: kheya\r\nX-Slow: ",
        "POST /v1/solve HTTP/1.1\r\nHost: kheya\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    ];
    let waits = dawdlers.map(|sent| patience(running.address, sent));
    let limit = Duration::from_secs(9);
    let waits = tokio::time::timeout(limit, futures_util::future::join_all(waits)).await;
    for (sent, wait) in dawdlers
        .iter()
        .zip(waits.expect("a dawdler was waited for"))
    {
        assert!(
            wait > Duration::from_secs(4),
            "{sent:?} was cut after {wait:?}"
        );
    }
    assert_eq!(call(running.address, "GET", "/livez", "").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trickling_head_is_cut_too() {
    let running = start(ServeConfig::default()).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\n").await.unwrap();
    let started = Instant::now();
    while stream.write_all(b"X-A: b\r\n").await.is_ok() {
        assert!(
            started.elapsed() < Duration::from_secs(8),
            "the head may trickle for ever"
        );
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_over_the_cap_wait_for_a_place() {
    let config = ServeConfig {
        max_connections: 2,
        ..ServeConfig::default()
    };
    let running = start(config).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream
            .write_all(text("GET", "/livez", "", false).as_bytes())
            .await
            .unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        held.push(stream);
    }
    let address = running.address;
    let third = tokio::spawn(async move { call(address, "GET", "/livez", "").await.0 });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!third.is_finished());
    held.pop();
    assert_eq!(third.await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_goes_on_although_its_client_hangs_up() {
    let running = start(ServeConfig::default()).await;
    let store = Arc::clone(&running.service.store);
    store.holds.send_replace(true);
    let body = json!({"requests": [request("a")]}).to_string();
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let sent = text("POST", "/v1/regions/dhaka/requests", &body, true);
    stream.write_all(sent.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(stream);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!store.applied.load(Ordering::SeqCst));
    store.holds.send_replace(false);
    for _ in 0..100 {
        if store.applied.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the change ended with its connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_goes_in_order() {
    let running = start(ServeConfig::default()).await;
    let address = running.address;
    let requests = "/v1/regions/dhaka/requests";
    let body = |id: &str| json!({"requests": [request(id)]}).to_string();
    assert_eq!(call(address, "GET", "/readyz", "").await.0, 200);
    assert_eq!(call(address, "POST", requests, &body("a")).await.0, 202);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let follow = text("GET", "/v1/regions/dhaka/events/stream", "", true);
    stream.write_all(follow.as_bytes()).await.unwrap();
    let follower = tokio::spawn(async move {
        let mut all = String::new();
        stream.read_to_string(&mut all).await.unwrap();
        all
    });

    running.shutdown.send(()).unwrap();
    while running.service.app.lifecycle().phase() < Phase::IntakeStopped {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // not ready, no new work; what is under way can still be ended and read
    let (status, body_of) = call(address, "GET", "/readyz", "").await;
    assert_eq!(status, 503);
    assert_eq!(
        serde_json::from_str::<Value>(&body_of).unwrap()["code"],
        "shutting_down"
    );
    for path in [requests, "/v1/regions/dhaka/windows/w/solve"] {
        let (status, text) = call(address, "POST", path, &body("b")).await;
        assert_eq!(
            (status, text.contains("shutting_down")),
            (503, true),
            "{path}"
        );
    }
    let window = json!({"requests": [], "drivers": []}).to_string();
    assert_eq!(call(address, "POST", "/v1/solve", &window).await.0, 503);
    assert_eq!(
        call(address, "GET", &format!("{requests}/a"), "").await.0,
        200
    );
    assert_eq!(
        call(address, "DELETE", &format!("{requests}/a"), "")
            .await
            .0,
        200
    );
    assert!(!running.ended.is_finished() && !follower.is_finished());

    running.finish.send(()).unwrap();
    let started = Instant::now();
    running.ended.await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    // the stream told everything, and ended as a stream ends
    let all = follower.await.unwrap();
    assert!(
        all.contains("event: cancelled") && all.ends_with("0\r\n\r\n"),
        "{all}"
    );
    assert!(TcpStream::connect(address).await.is_err());
}

// on one thread, so that the stream wakes to both at once
#[tokio::test]
async fn a_stream_tells_what_happens_as_it_is_ended() {
    for _ in 0..20 {
        let running = start(ServeConfig::default()).await;
        let (service, address) = (&running.service, running.address);
        let body = json!({"requests": [request("a")]}).to_string();
        let requests = "/v1/regions/dhaka/requests";
        assert_eq!(call(address, "POST", requests, &body).await.0, 202);
        let mut stream = TcpStream::connect(address).await.unwrap();
        let follow = text(
            "GET",
            "/v1/regions/dhaka/events/stream?after=latest",
            "",
            true,
        );
        stream.write_all(follow.as_bytes()).await.unwrap();
        // its head has come: it waits for what comes next
        let mut all = vec![0; 4096];
        let read = stream.read(&mut all).await.unwrap();
        all.truncate(read);
        tokio::time::sleep(Duration::from_millis(20)).await;

        let region = RegionId::new("dhaka").unwrap();
        let request_id = RequestId::new("a").unwrap();
        let cancel = CancelRequest { request_id };
        let store: &dyn Store = &*service.store;
        store.cancel(&region, cancel).await.unwrap().unwrap();
        service.app.lifecycle().advance(Phase::Draining);
        stream.read_to_end(&mut all).await.unwrap();
        let all = String::from_utf8(all).unwrap();
        assert!(all.contains("event: cancelled"), "{all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_listener_has_what_watches_and_nothing_else() {
    let admin_listen = Some("127.0.0.1:0".parse().unwrap());
    let running = start(ServeConfig {
        admin_listen,
        ..ServeConfig::default()
    })
    .await;
    let admin = running.admin.unwrap();
    for path in ["/metrics", "/docs", "/openapi.json", "/livez", "/readyz"] {
        assert_eq!(call(admin, "GET", path, "").await.0, 200, "{path}");
    }
    assert_eq!(call(admin, "GET", "/v1/regions", "").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_spoken_without_tls() {
    let running = start(ServeConfig::default()).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    // the preface in two pieces, then an empty SETTINGS frame
    stream.write_all(b"PRI").await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    stream
        .write_all(b" * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "the server's first frame is SETTINGS");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_served_with_both_versions_of_http() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles {
        cert: dir.path().join("cert.pem"),
        key: dir.path().join("key.pem"),
    };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let running = start(ServeConfig {
        tls: Some(files),
        ..ServeConfig::default()
    })
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    for (protocol, agreed) in [(&b"http/1.1"[..], "http/1.1"), (b"h2", "h2")] {
        let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        client.alpn_protocols = vec![protocol.to_vec()];
        let connector = TlsConnector::from(Arc::new(client));
        let tcp = TcpStream::connect(running.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, tcp).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(agreed.as_bytes()));
        if agreed == "http/1.1" {
            assert_eq!(
                exchange(stream, &text("GET", "/livez", "", true)).await.0,
                200
            );
        }
    }
    // plain HTTP on a TLS port is cut, and keeps nobody waiting
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream
        .write_all(text("GET", "/livez", "", true).as_bytes())
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));
}
