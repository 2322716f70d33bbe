//! A real `kheya serve` process, and calls to it.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

/// A server that is killed with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Starts the server on a free port of loopback and waits until it listens.
    pub(crate) fn start(more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kheya"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines
                .next()
                .expect("the server ended before it listened")
                .unwrap();
            if let Some((_, address)) = line.split_once("listening on ") {
                break address.split_whitespace().next().unwrap().to_owned();
            }
        };
        // the rest of its log is of no interest, but must be read
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Calls to one region.
#[derive(Clone)]
pub(crate) struct Api {
    http: reqwest::Client,
    base: String,
}

impl Api {
    pub(crate) fn new(url: &str, region: &str) -> Self {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(40))
            .build()
            .unwrap();
        Self {
            http,
            base: format!("{url}/v1/regions/{region}"),
        }
    }

    /// Sends a call; gives its status and JSON answer.
    pub(crate) async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        // a connection may break under a call (a server ends idle ones); every call may be repeated
        let mut tries = 0;
        let answer = loop {
            let mut call = self
                .http
                .request(method.clone(), format!("{}{path}", self.base));
            if let Some(body) = body {
                call = call.json(body);
            }
            match call.send().await {
                Ok(answer) => break answer,
                Err(error) => {
                    tries += 1;
                    assert!(tries < 5, "{path}: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        };
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        )
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(reqwest::Method::POST, path, Some(body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send(reqwest::Method::GET, path, None).await
    }

    /// Opens the event stream after a cursor.
    pub(crate) async fn stream(&self, last_event_id: Option<&str>) -> reqwest::Response {
        let mut call = self.http.get(format!("{}/events/stream", self.base));
        if let Some(id) = last_event_id {
            call = call.header("Last-Event-ID", id);
        }
        let answer = call.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer
    }
}
