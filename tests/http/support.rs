//! A service on the memory store with a runtime that answers as it is told.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode, header},
};
use http_body_util::BodyExt as _;
use kheya::{
    config::ServeConfig,
    domain::{
        CostMs, DriverId, DurationMs, Fence, NodeId, Nonce, Place, RegionId, RequestId, UnixMs,
        WindowId,
    },
    http::{
        AppParts, AppState, Level, OwnWindowCall, OwnWindowError, OwnWindowFuture, TokenFile,
        WindowRuntime, router,
    },
    protocol::{
        Answer, BeginOwnWindow, ClaimOwnBatch, Command, Fingerprint, OwnPair, PairOutcome, Query,
        Reply, RequestDraft,
    },
    store::{
        Clock, ManualClock, MemoryStore, RegionSignal, Store, StoreError, StoreFuture, StoreOptions,
    },
    telemetry::Telemetry,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// The store's clock at the start of each test.
pub(crate) const NOW: i64 = 1_796_044_599_485;

/// A memory store that can be told to fail.
pub(crate) struct FickleStore {
    inner: MemoryStore,
    pub(crate) fails: Mutex<Option<StoreError>>,
    pub(crate) answers: Mutex<Option<Answer>>,
    /// Commands wait while this is set.
    pub(crate) holds: watch::Sender<bool>,
    pub(crate) applied: AtomicBool,
}

impl Store for FickleStore {
    fn apply<'a>(&'a self, region: &'a RegionId, command: Command) -> StoreFuture<'a, Answer> {
        Box::pin(async move {
            let mut holds = self.holds.subscribe();
            holds.wait_for(|holds| !holds).await.unwrap();
            if let Some(error) = self.fails.lock().clone() {
                return Err(error);
            }
            if let Some(answer) = self.answers.lock().clone() {
                return Ok(answer);
            }
            let answer = self.inner.apply(region, command).await;
            self.applied.store(true, Ordering::SeqCst);
            answer
        })
    }

    fn query<'a>(&'a self, region: &'a RegionId, query: Query) -> StoreFuture<'a, Reply> {
        Box::pin(async move {
            if let Some(error) = self.fails.lock().clone() {
                return Err(error);
            }
            self.inner.query(region, query).await
        })
    }

    fn regions(&self) -> StoreFuture<'_, Vec<RegionId>> {
        Box::pin(async move {
            if let Some(error) = self.fails.lock().clone() {
                return Err(error);
            }
            self.inner.regions().await
        })
    }

    fn watch<'a>(&'a self, region: &'a RegionId) -> StoreFuture<'a, watch::Receiver<RegionSignal>> {
        self.inner.watch(region)
    }

    fn watch_regions(&self) -> watch::Receiver<usize> {
        self.inner.watch_regions()
    }

    fn clock(&self, region: &RegionId) -> Arc<dyn Clock> {
        self.inner.clock(region)
    }

    fn alive<'a>(&'a self, node: &'a NodeId, life: DurationMs) -> StoreFuture<'a, Vec<NodeId>> {
        self.inner.alive(node, life)
    }
}

/// A runtime that answers as it is told.
pub(crate) struct Runtime {
    pub(crate) level: Mutex<Level>,
    pub(crate) answer: Mutex<Result<Arc<str>, OwnWindowError>>,
    pub(crate) calls: Mutex<Vec<OwnWindowCall>>,
}

impl WindowRuntime for Runtime {
    fn level(&self, _: &RegionId) -> Level {
        *self.level.lock()
    }

    fn solve_own<'a>(&'a self, _: &'a RegionId, call: OwnWindowCall) -> OwnWindowFuture<'a> {
        self.calls.lock().push(call);
        let answer = self.answer.lock().clone();
        Box::pin(async move { answer })
    }
}

/// A service under test.
pub(crate) struct Service {
    pub(crate) app: AppState,
    pub(crate) router: Router,
    pub(crate) store: Arc<FickleStore>,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) clock: Arc<ManualClock>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    /// Checks a problem's status, code and members.
    pub(crate) fn is_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(
            self.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
        let body = self.json();
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status, "{body}");
        for member in ["type", "title", "detail", "errors"] {
            assert!(!body[member].is_null(), "{member} is missing in {body}");
        }
        if matches!(status, 429 | 503 | 504) {
            let seconds = self.headers[header::RETRY_AFTER].to_str().unwrap();
            assert!(seconds.parse::<u64>().unwrap() >= 1);
        }
        body
    }

    /// The paths of a problem's errors.
    pub(crate) fn paths(&self) -> Vec<String> {
        let body = self.json();
        let errors = body["errors"].as_array().unwrap().iter();
        errors
            .map(|error| error["path"].as_str().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        self.json()
    }
}

impl Service {
    pub(crate) fn new() -> Self {
        Self::with(ServeConfig::default(), None)
    }

    pub(crate) fn with(config: ServeConfig, tokens: Option<TokenFile>) -> Self {
        let clock = Arc::new(ManualClock::at(UnixMs::new(NOW)));
        let ticking: Arc<dyn Clock> = clock.clone();
        let options: StoreOptions = config.store_options();
        let store = Arc::new(FickleStore {
            inner: MemoryStore::with_clock(options, ticking).unwrap(),
            fails: Mutex::new(None),
            answers: Mutex::new(None),
            holds: watch::Sender::new(false),
            applied: AtomicBool::new(false),
        });
        let runtime = Arc::new(Runtime {
            level: Mutex::new(Level::BatchStraightLine),
            answer: Mutex::new(Ok(r#"{"window_id":"w"}"#.into())),
            calls: Mutex::new(Vec::new()),
        });
        let app = AppState::new(AppParts {
            store: store.clone(),
            runtime: runtime.clone(),
            config: Arc::new(config),
            tokens: tokens.map(Arc::new),
            telemetry: Telemetry::install().unwrap(),
        });
        Self {
            router: router(app.clone()),
            app,
            store,
            runtime,
            clock,
        }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Got {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Got {
            status: head.status,
            headers: head.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Got {
        let mut request = Request::builder().method(method).uri(path);
        let body = match body {
            None => Body::empty(),
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
        };
        self.send(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.call("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Got {
        self.call("POST", path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Got {
        self.call("DELETE", path, None).await
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn advance(&self, ms: i64) {
        self.clock.advance(DurationMs::new(ms));
    }

    /// A fresh driver of region `dhaka`.
    pub(crate) async fn ping(&self, id: &str) {
        let ping = json!({"drivers": [ping(id)]});
        let answer = self.post("/v1/regions/dhaka/drivers", ping).await.ok();
        assert_eq!(answer["accepted"], 1, "{answer}");
    }

    /// Holds a driver of region `dhaka` for a request.
    pub(crate) async fn assign(&self, request: &str, driver: &str) -> Fence {
        let region = dhaka();
        let window_id = WindowId::new(request).unwrap();
        let runner = Nonce::new(1);
        let begin = BeginOwnWindow {
            window_id: window_id.clone(),
            fingerprint: Fingerprint::of(request.as_bytes()),
            runner,
            work_ms: DurationMs::new(1_000),
        };
        self.store()
            .begin_own(&region, begin)
            .await
            .unwrap()
            .unwrap();
        let id = RequestId::new(request).unwrap();
        let batch = ClaimOwnBatch {
            window_id,
            runner,
            batch_no: 0,
            lease_ms: None,
            pairs: vec![OwnPair {
                request: Arc::new(RequestDraft::at(id, Place::new(23.78, 90.4).unwrap())),
                driver_id: DriverId::new(driver).unwrap(),
                eta: DurationMs::new(1_500),
                cost: CostMs::new(2_500),
            }],
        };
        let answer = self
            .store()
            .claim_own(&region, batch)
            .await
            .unwrap()
            .unwrap();
        match answer.outcomes[0] {
            PairOutcome::Claimed { fence, .. } => fence,
            PairOutcome::Lost(loss) => panic!("{loss:?}"),
        }
    }
}

pub(crate) fn dhaka() -> RegionId {
    RegionId::new("dhaka").unwrap()
}

pub(crate) fn ping(id: &str) -> Value {
    json!({"id": id, "lat": 23.78, "lng": 90.4, "at_ms": NOW})
}

pub(crate) fn request(id: &str) -> Value {
    json!({"id": id, "pickup": {"lat": 23.78, "lng": 90.4}})
}
