//! Calls to the nodes, each told to the witness before it is sent and after it is answered.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::Value;

/// Longest wait for an answer; a stopped node gives none.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Pause before a call is repeated whose outcome is not known.
const REPEAT_AFTER: Duration = Duration::from_millis(80);

/// What came of one try.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// Still under way.
    Waiting,
    /// The node answered.
    Answered {
        status: u16,
        retry_after: bool,
        body: String,
    },
    /// No answer, or half of one: the node died, hangs, or cut the connection.
    Cut(String),
}

impl Outcome {
    /// The answer as JSON; null for none.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Answered { body, .. } => serde_json::from_str(body).unwrap_or_default(),
            _ => Value::Null,
        }
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Answered { status, .. } => *status,
            _ => 0,
        }
    }

    pub(crate) fn is_ok(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether the node says that nothing was executed, and that the call may come again.
    pub(crate) fn is_not_executed(&self) -> bool {
        self.status() == 503
            && ["store_unavailable", "shutting_down", "not_ready"].contains(&self.code().as_str())
    }

    /// Whether the call must be repeated to know what came of it.
    pub(crate) fn is_unknown(&self) -> bool {
        match self {
            Self::Answered { status, .. } => {
                matches!(status, 504 | 500 | 429)
                    || self.is_not_executed()
                    || self.code() == "window_in_progress"
            }
            Self::Waiting | Self::Cut(_) => true,
        }
    }
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// New requests.
    Intake { requests: Vec<String> },
    /// Taking a request back.
    Cancel { request: String },
    /// A verb about a claim.
    Claim {
        verb: &'static str,
        driver: String,
        request: String,
        fence: u64,
    },
    /// A window of the caller's own.
    Own {
        window: String,
        requests: Vec<String>,
    },
}

/// One try of a call.
#[derive(Debug, Clone)]
pub(crate) struct Try {
    pub(crate) node: usize,
    pub(crate) sent: Instant,
    pub(crate) answered: Option<Instant>,
    pub(crate) outcome: Outcome,
}

/// A call with all its tries, in order.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) region: String,
    pub(crate) asked: Asked,
    pub(crate) tries: Vec<Try>,
    /// Whether it was repeated until its outcome is known.
    pub(crate) insists: bool,
}

impl Told {
    /// Whether a success was answered before this instant.
    pub(crate) fn is_answered_before(&self, instant: Instant) -> bool {
        let mut tries = self.tries.iter();
        tries.any(|tried| tried.outcome.is_ok() && tried.answered.is_some_and(|at| at < instant))
    }

    /// The last answer, if it says what came of the call.
    pub(crate) fn known(&self) -> Option<&Try> {
        self.tries.last().filter(|last| !last.outcome.is_unknown())
    }
}

/// Remembers every call.
#[derive(Debug, Default)]
pub(crate) struct Witness(Mutex<Vec<Told>>);

impl Witness {
    pub(crate) fn told(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }

    fn begin(&self, region: &str, asked: Asked, insists: bool) -> usize {
        let mut told = self.0.lock().unwrap();
        told.push(Told {
            region: region.to_owned(),
            asked,
            tries: Vec::new(),
            insists,
        });
        told.len() - 1
    }

    fn tries(&self, place: usize, node: usize) -> usize {
        let mut told = self.0.lock().unwrap();
        let tries = &mut told[place].tries;
        tries.push(Try {
            node,
            sent: Instant::now(),
            answered: None,
            outcome: Outcome::Waiting,
        });
        tries.len() - 1
    }

    fn ended(&self, place: usize, number: usize, outcome: Outcome) {
        let mut told = self.0.lock().unwrap();
        let tried = &mut told[place].tries[number];
        tried.answered = Some(Instant::now());
        tried.outcome = outcome;
    }
}

/// Sends calls to the nodes.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    http: reqwest::Client,
    nodes: Arc<[String]>,
    next: Arc<AtomicUsize>,
    pub(crate) witness: Arc<Witness>,
}

impl Caller {
    pub(crate) fn new(nodes: Vec<String>) -> Self {
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            .connect_timeout(PATIENCE / 3)
            .build();
        Self {
            http: http.unwrap(),
            nodes: nodes.into(),
            next: Arc::default(),
            witness: Arc::default(),
        }
    }

    /// The next node in turn: callers know nothing of leaders.
    pub(crate) fn any_node(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % self.nodes.len()
    }

    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Sends a call once, to one node. `path` begins behind `/v1/regions/`.
    pub(crate) async fn send(
        &self,
        node: usize,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Outcome {
        let url = format!("{}/v1/regions/{path}", self.nodes[node]);
        self.send_to(url, method, body).await
    }

    async fn send_to(&self, url: String, method: Method, body: Option<String>) -> Outcome {
        let mut call = self.http.request(method, url);
        if let Some(body) = body {
            call = call.header("content-type", "application/json").body(body);
        }
        let answer = match call.send().await {
            Ok(answer) => answer,
            Err(error) => return Outcome::Cut(format!("{error:?}")),
        };
        let status = answer.status().as_u16();
        let retry_after = answer.headers().contains_key("retry-after");
        match answer.text().await {
            Ok(body) => Outcome::Answered {
                status,
                retry_after,
                body,
            },
            Err(error) => Outcome::Cut(format!("{error:?}")),
        }
    }

    pub(crate) async fn get(&self, node: usize, path: &str) -> Outcome {
        self.send(node, Method::GET, path, None).await
    }

    /// Reads a node's metrics; nothing if it does not answer.
    pub(crate) async fn metrics(&self, node: usize) -> Option<String> {
        let url = format!("{}/metrics", self.nodes[node]);
        match self.send_to(url, Method::GET, None).await {
            Outcome::Answered {
                status: 200, body, ..
            } => Some(body),
            _ => None,
        }
    }

    /// Reads from the first node that answers with success.
    pub(crate) async fn read(&self, path: &str) -> Option<Value> {
        for _ in 0..self.nodes.len() {
            let outcome = self.get(self.any_node(), path).await;
            if outcome.is_ok() {
                return Some(outcome.json());
            }
        }
        None
    }

    /// Sends a call, and again to other nodes until its outcome is known, for so long; gives the
    /// last outcome.
    pub(crate) async fn insist(&self, call: Call, patience: Duration) -> Outcome {
        let place = self
            .witness
            .begin(&call.region, call.asked.clone(), !patience.is_zero());
        let give_up = Instant::now() + patience;
        loop {
            let node = self.any_node();
            let number = self.witness.tries(place, node);
            let path = format!("{}{}", call.region, call.path);
            let outcome = self
                .send(node, call.method.clone(), &path, call.body.clone())
                .await;
            self.witness.ended(place, number, outcome.clone());
            if !outcome.is_unknown() || Instant::now() >= give_up {
                return outcome;
            }
            tokio::time::sleep(REPEAT_AFTER).await;
        }
    }
}

/// A call to one region. `path` begins behind the region's name.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) region: String,
    pub(crate) asked: Asked,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
}
