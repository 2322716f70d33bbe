//! Whether the servers are set up as they must be.

use std::sync::Arc;

use redis::Value;
use tokio::time::Instant;

use super::{
    dial::text,
    error::{LinkError, text_of},
    lane::Lane,
    link::Link,
    server::Server,
};

/// What was found at the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerReport {
    /// The versions that run, for example `7.0.15`.
    pub versions: Vec<String>,
    /// What an operator should know, each with its server.
    pub warnings: Vec<String>,
}

/// What `CONFIG GET` is asked for, one by one: before 7.0 it takes one name. `INFO` comes last.
const SETTINGS: [&str; 4] = [
    "maxmemory-policy",
    "repl-backlog-ttl",
    "appendonly",
    "cluster-require-full-coverage",
];

/// The settings of one server that matter, as far as they may be read.
#[derive(Debug, Default)]
struct Found {
    version: Option<String>,
    policy: Option<String>,
    backlog_ttl: Option<String>,
    append_only: Option<bool>,
    /// Whether all slots are refused when one is not served; a cluster's only.
    full_coverage: Option<bool>,
    /// Why not all could be read.
    denied: Option<String>,
}

impl Link {
    /// Looks at every primary: whether it never evicts, and what could lose data.
    ///
    /// That it is a primary, and new enough, was found when its connection was opened.
    ///
    /// # Errors
    /// [`LinkError::Unfit`] says what to change; [`LinkError::Unreachable`].
    pub(crate) async fn check_server(&self) -> Result<ServerReport, LinkError> {
        let mut report = ServerReport::default();
        for server in self.servers() {
            let place = server.finder().to_string();
            let found = self.look(&server).await.map_err(|reason| {
                let address = place.as_str().into();
                LinkError::Unreachable { address, reason }
            })?;
            found.judge(&place, &mut report)?;
        }
        report.versions.sort_unstable();
        report.versions.dedup();
        Ok(report)
    }

    async fn look(&self, server: &Arc<Server>) -> Result<Found, Arc<str>> {
        let mut pipeline = redis::pipe();
        for name in SETTINGS {
            pipeline.cmd("CONFIG").arg("GET").arg(name);
        }
        pipeline.cmd("INFO");
        let deadline = Instant::now() + self.deadline();
        let told = |error: super::CallError| Arc::from(error.to_string());
        let ready = server.ready(Lane::Read, 0, deadline).await.map_err(told)?;
        let replies = ready.send(&pipeline, deadline).await.map_err(told)?;
        Ok(Found::read(&replies))
    }
}

impl Found {
    fn read(replies: &[Value]) -> Self {
        let mut found = Self::default();
        let mut settings = [const { None::<String> }; SETTINGS.len()];
        for (setting, reply) in settings.iter_mut().zip(replies) {
            match reply {
                Value::Array(pair) => *setting = pair.get(1).map(|value| text(value).to_owned()),
                Value::Map(pairs) => {
                    *setting = pairs.first().map(|(_, value)| text(value).to_owned());
                }
                Value::ServerError(error) => found.denied = Some(text_of(error)),
                _ => {}
            }
        }
        let info = match replies.get(SETTINGS.len()) {
            Some(Value::VerbatimString { text, .. }) => text,
            Some(reply) => text(reply),
            None => "",
        };
        let info = |name: &str| {
            let field = |line: &str| {
                line.strip_prefix(name)?
                    .strip_prefix(':')
                    .map(str::to_owned)
            };
            info.lines().find_map(field)
        };
        let [policy, backlog_ttl, append_only, full_coverage] = settings;
        found.version = info("redis_version");
        // a server without replies to CONFIG GET tells these two by INFO as well
        found.policy = policy.or_else(|| info("maxmemory_policy"));
        found.append_only = append_only
            .map(|value| value == "yes")
            .or_else(|| info("aof_enabled").map(|value| value == "1"));
        found.backlog_ttl = backlog_ttl;
        found.full_coverage = info("cluster_enabled")
            .is_some_and(|value| value == "1")
            .then(|| full_coverage.is_none_or(|value| value == "yes"));
        found
    }

    fn judge(self, place: &str, report: &mut ServerReport) -> Result<(), LinkError> {
        let unfit = |what: String| Err(LinkError::Unfit(format!("{place}: {what}").into()));
        let mut warn = |what: &str| report.warnings.push(format!("{place}: {what}"));
        match self.policy.as_deref() {
            Some("noeviction") => {}
            Some(policy) => {
                return unfit(format!(
                    "maxmemory-policy {policy} may throw away what drivers were promised: set \
                     noeviction"
                ));
            }
            None => {
                let why = self.denied.as_deref().unwrap_or("no reply");
                return unfit(format!(
                    "maxmemory-policy cannot be read ({why}): permit +config|get or +info"
                ));
            }
        }
        match self.backlog_ttl.as_deref() {
            Some("0") => {}
            Some(seconds) => warn(&format!(
                "repl-backlog-ttl is {seconds}: a primary that is without replicas for so long \
                 takes a new replication id, which is read as a loss of data and quarantines its \
                 regions; set 0"
            )),
            None => warn(
                "repl-backlog-ttl cannot be read: it must be 0, or regions are quarantined when \
                 a primary has been without replicas for that time",
            ),
        }
        match self.append_only {
            Some(true) => {}
            Some(false) => warn("appendonly is no: a restart loses claims and requests; set yes"),
            None => warn("appendonly cannot be read: without it a restart loses claims"),
        }
        if self.full_coverage == Some(true) {
            warn(
                "cluster-require-full-coverage is yes, or cannot be read: one shard that is lost \
                 stops the regions of all others; set no",
            );
        }
        report.versions.extend(self.version);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn judged(lines: &[&str]) -> Result<ServerReport, LinkError> {
        let value = |line: &&str| parse_redis_value(line.as_bytes()).unwrap();
        let replies: Vec<_> = lines.iter().map(value).collect();
        let mut report = ServerReport::default();
        Found::read(&replies).judge("cache:1", &mut report)?;
        Ok(report)
    }

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn setting(name: &str, value: &str) -> String {
        format!("*2\r\n{}{}", bulk(name), bulk(value))
    }

    #[test]
    fn a_server_that_evicts_is_refused() {
        let policy = setting("maxmemory-policy", "allkeys-lru");
        let error = judged(&[&policy]).unwrap_err().to_string();
        assert!(
            error.contains("allkeys-lru") && error.contains("cache:1"),
            "{error}"
        );
    }

    #[test]
    fn a_good_server_gives_no_warning_and_a_default_one_two() {
        let policy = setting("maxmemory-policy", "noeviction");
        let info = bulk("# Server\r\nredis_version:7.0.15\r\n");
        let ttl = setting("repl-backlog-ttl", "0");
        let aof = setting("appendonly", "yes");
        let full = setting("cluster-require-full-coverage", "no");
        let report = judged(&[&policy, &ttl, &aof, &full, &info]).unwrap();
        assert_eq!(report.versions, ["7.0.15"]);
        assert_eq!(report.warnings, Vec::<String>::new());
        let ttl = setting("repl-backlog-ttl", "3600");
        let aof = setting("appendonly", "no");
        let full = setting("cluster-require-full-coverage", "yes");
        let report = judged(&[&policy, &ttl, &aof, &full, &info]).unwrap();
        assert_eq!(report.warnings.len(), 2, "{report:?}");
        let clustered = bulk("redis_version:7.0.15\r\ncluster_enabled:1\r\n");
        let report = judged(&[&policy, &ttl, &aof, &full, &clustered]).unwrap();
        assert_eq!(report.warnings.len(), 3, "{report:?}");
    }

    #[test]
    fn where_config_is_denied_info_tells_the_policy() {
        let denied = "-NOPERM no permissions to run 'config|get'\r\n";
        let info = bulk("redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n");
        let report = judged(&[denied, denied, denied, denied, &info]).unwrap();
        assert_eq!(report.warnings.len(), 1, "{report:?}");
        let error = judged(&[denied, denied, denied, denied, denied])
            .unwrap_err()
            .to_string();
        assert!(error.contains("+info"), "{error}");
    }
}
