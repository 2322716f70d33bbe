//! One connection, with a time limit on everything that a client may leave undone.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{Router, body::Body, extract::Request};
use bytes::Bytes;
use hyper::{
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::lifecycle::Lifecycle;

/// Time for the head of a request; on HTTP/1 also the longest idle time between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest idle time of an HTTP/2 connection.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long what was sent may stay unacknowledged, a full window of the client included: 30 s.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// Calls at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;
/// Most bytes of a head.
const MAX_HEAD: usize = 32 * 1024;
/// How an HTTP/2 connection begins; no HTTP/1 request does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a listener serves its connections with.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) lifecycle: Lifecycle,
}

/// Whether a connection does something.
#[derive(Default)]
struct Activity {
    under_way: AtomicUsize,
    /// Something began or ended since the last look.
    seen: AtomicBool,
}

impl Activity {
    fn is_idle(&self) -> bool {
        // counts alone: no other memory is published with them
        !self.seen.swap(false, Ordering::Relaxed) && self.under_way.load(Ordering::Relaxed) == 0
    }
}

/// A call that is under way, until the last byte of its answer.
struct UnderWay(Arc<Activity>);

impl UnderWay {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.under_way.fetch_add(1, Ordering::Relaxed);
        activity.seen.store(true, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
        self.0.seen.store(true, Ordering::Relaxed);
    }
}

/// The body of an answer; its call is under way until it ends.
struct Answering {
    body: Body,
    under_way: UnderWay,
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.under_way.0.seen.store(true, Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Serving {
    /// Serves one connection to its end.
    pub(crate) async fn connection(self, tcp: TcpStream) {
        if let Err(error) = set_up(&tcp) {
            tracing::debug!(%error, "connection not set up");
            return;
        }
        match self.tls.clone() {
            None => {
                let Some(is_http2) = begins_http2(&tcp).await else {
                    return;
                };
                self.serve(tcp, is_http2).await;
            }
            Some(acceptor) => match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(tcp)).await {
                Ok(Ok(stream)) => {
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    self.serve(stream, is_http2).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            },
        }
    }

    async fn serve<S>(self, stream: S, is_http2: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Arc::new(Activity::default());
        let (router, watched) = (self.router, Arc::clone(&activity));
        let service = service_fn(move |request: Request<Incoming>| {
            let under_way = UnderWay::begin(&watched);
            let answer = router.clone().oneshot(request.map(Body::new));
            async move {
                let response = answer.await?;
                Ok::<_, std::convert::Infallible>(
                    response.map(|body| Answering { body, under_way }),
                )
            }
        });
        let io = TokioIo::new(stream);
        let served = if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(MAX_STREAMS)
                .max_header_list_size(MAX_HEAD as u32)
                .keep_alive_interval(Duration::from_secs(20))
                .keep_alive_timeout(Duration::from_secs(10));
            let mut connection = std::pin::pin!(builder.serve_connection(io, service));
            tokio::select! {
                served = connection.as_mut() => served,
                () = self.lifecycle.draining() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
                () = falls_idle(&activity) => {
                    connection.as_mut().graceful_shutdown();
                    // a client that answers nothing any more is not waited for
                    timeout(HEAD_TIMEOUT, connection).await.unwrap_or(Ok(()))
                }
            }
        } else {
            let mut builder = http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(MAX_HEAD);
            let mut connection = std::pin::pin!(builder.serve_connection(io, service));
            tokio::select! {
                served = connection.as_mut() => served,
                () = self.lifecycle.draining() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// Ends when a connection has no call in its first seconds, or none for a while.
async fn falls_idle(activity: &Activity) {
    sleep(HEAD_TIMEOUT).await;
    while !activity.is_idle() {
        sleep(IDLE_TIMEOUT).await;
    }
}

fn set_up(tcp: &TcpStream) -> std::io::Result<()> {
    tcp.set_nodelay(true)?;
    let socket = socket2::SockRef::from(tcp);
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(Duration::from_mins(1))
        .with_interval(Duration::from_secs(10));
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}

/// Looks at the first bytes without taking them; nothing when too few come in time.
async fn begins_http2(tcp: &TcpStream) -> Option<bool> {
    let look = async {
        let mut first = [0; PREFACE.len()];
        loop {
            let seen = tcp.peek(&mut first).await.ok()?;
            if seen == 0 {
                return None;
            }
            if !PREFACE.starts_with(&first[..seen]) {
                return Some(false);
            }
            if seen == PREFACE.len() {
                return Some(true);
            }
            // a peek is ready at once while bytes wait: look again a little later
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(HEAD_TIMEOUT, look).await.ok().flatten()
}
