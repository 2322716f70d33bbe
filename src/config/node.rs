//! What a node is started with: file, environment and flags, checked as a whole.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Map;
use toml::{Table, Value};

use super::{
    ConfigErrors, FieldError, RegionConfig,
    layers::{Flags, Layers},
};
use crate::{
    domain::{NodeId, RegionId},
    protocol::MAX_LEADER_LEASE_MS,
    store::RedisAddress,
};

/// Where regions live.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// In this process.
    Memory,
    /// On a Redis server, Sentinel or Cluster.
    Redis(RedisAddress),
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The times of a leadership, `leader_lease > renew_deadline > 1.2 × retry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadershipTimes {
    /// Life of a leadership that is not renewed.
    pub leader_lease: Duration,
    /// How long a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// Pause between two tries.
    pub retry: Duration,
    /// A leader stops claiming this long before its lease ends.
    pub margin: Duration,
}

/// Where the node's inputs and decisions are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The directory.
    pub dir: PathBuf,
    /// Most bytes of all its files.
    pub max_bytes: u64,
}

/// PEM files of the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// A node's checked configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ServeConfig {
    /// Address of the API.
    pub listen: SocketAddr,
    /// Address of `/metrics`, `/docs` and `/openapi.json` without tokens.
    pub admin_listen: Option<SocketAddr>,
    /// Where regions live.
    pub store: StoreAddress,
    /// The node's name, by default its listen address.
    pub node_id: NodeId,
    /// The token file. Absent: no access control, loopback only.
    pub tokens: Option<PathBuf>,
    /// Absent: nothing is recorded.
    pub record: Option<Recording>,
    /// Times of the leadership.
    pub leadership: LeadershipTimes,
    /// Longest store call.
    pub store_deadline: Duration,
    /// Absent: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Most connections at once.
    pub max_connections: usize,
    /// Most regions.
    pub max_regions: usize,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What is logged: `info`, or directives such as `kheya=debug`.
    pub log: String,
    /// Configuration of a new region.
    pub region_defaults: RegionConfig,
    /// Configuration of named regions, where it differs.
    pub regions: BTreeMap<RegionId, RegionConfig>,
    /// Files of learned demand, by region.
    pub demand_models: BTreeMap<RegionId, PathBuf>,
}

/// Every setting, in the order of the documentation.
const KEYS: &[&str] = &[
    "listen",
    "admin_listen",
    "store",
    "node_id",
    "tokens",
    "record",
    "record_max_bytes",
    "leader_lease_ms",
    "renew_deadline_ms",
    "retry_ms",
    "margin_ms",
    "store_deadline_ms",
    "tls_cert",
    "tls_key",
    "max_connections",
    "max_regions",
    "log_format",
    "log",
    "region_defaults",
    "regions",
    "demand_models",
];

/// Variables with our prefix that name the file itself.
const NOT_SETTINGS: &[&str] = &["config"];

const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7070);

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            admin_listen: None,
            store: StoreAddress::Memory,
            node_id: node_of(DEFAULT_LISTEN),
            tokens: None,
            record: None,
            leadership: LeadershipTimes {
                leader_lease: Duration::from_secs(6),
                renew_deadline: Duration::from_secs(4),
                retry: Duration::from_secs(1),
                margin: Duration::from_millis(500),
            },
            store_deadline: Duration::from_millis(300),
            tls: None,
            max_connections: 4_096,
            max_regions: 1_000,
            log_format: LogFormat::Text,
            log: "info".into(),
            region_defaults: RegionConfig::default(),
            regions: BTreeMap::new(),
            demand_models: BTreeMap::new(),
        }
    }
}

impl ServeConfig {
    /// Checks the settings of a file (with its name), an environment and flags, the later over the
    /// earlier.
    ///
    /// # Errors
    /// Everything that is wrong, each with its source.
    pub fn load(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: Flags,
    ) -> Result<Self, ConfigErrors> {
        let mut layers = Layers::new(file, environment, flags, KEYS, NOT_SETTINGS);
        let config = Self::read(&mut layers);
        config.cross_check(&mut layers);
        if layers.errors.is_empty() {
            Ok(config)
        } else {
            Err(ConfigErrors(layers.errors))
        }
    }

    fn read(layers: &mut Layers) -> Self {
        let defaults = Self::default();
        let listen = layers.text("listen", address).unwrap_or(defaults.listen);
        let mut ms = |key, min, max, default: Duration| {
            let number = layers.integer(key, min, max, default.as_millis() as i64);
            Duration::from_millis(number.unsigned_abs())
        };
        let times = defaults.leadership;
        let leadership = LeadershipTimes {
            leader_lease: ms(
                "leader_lease_ms",
                100,
                MAX_LEADER_LEASE_MS.get(),
                times.leader_lease,
            ),
            renew_deadline: ms("renew_deadline_ms", 50, 60_000, times.renew_deadline),
            retry: ms("retry_ms", 10, 60_000, times.retry),
            margin: ms("margin_ms", 0, 60_000, times.margin),
        };
        let store_deadline = ms("store_deadline_ms", 10, 10_000, defaults.store_deadline);
        let max_bytes = layers.integer("record_max_bytes", 1 << 20, 1 << 50, 4 << 30);
        let record = layers.text("record", path).map(|dir| Recording {
            dir,
            max_bytes: max_bytes.unsigned_abs(),
        });
        let (cert, key) = (layers.text("tls_cert", path), layers.text("tls_key", path));
        let tls = match (cert, key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (cert, _) => {
                let missing = if cert.is_some() {
                    "tls_key"
                } else {
                    "tls_cert"
                };
                layers.refuse(missing, "tls_cert and tls_key are given together");
                None
            }
        };
        let region_defaults = layers.table("region_defaults");
        let base = RegionConfig::default();
        let region_defaults = region(layers, "region_defaults", &base, region_defaults);
        Self {
            listen,
            admin_listen: layers.text("admin_listen", address),
            store: layers
                .text("store", StoreAddress::read)
                .unwrap_or(defaults.store),
            node_id: layers
                .text("node_id", |text| {
                    NodeId::new(text).map_err(|e| e.to_string())
                })
                .unwrap_or_else(|| node_of(listen)),
            tokens: layers.text("tokens", path),
            record,
            leadership,
            store_deadline,
            tls,
            max_connections: layers.integer("max_connections", 1, 1 << 20, 4_096) as usize,
            max_regions: layers.integer("max_regions", 1, 1_000_000, 1_000) as usize,
            log_format: layers
                .text("log_format", LogFormat::read)
                .unwrap_or_default(),
            log: layers
                .text("log", |text| Ok(text.into()))
                .unwrap_or(defaults.log),
            regions: regions(layers, &region_defaults),
            demand_models: demand_models(layers),
            region_defaults,
        }
    }

    fn cross_check(&self, layers: &mut Layers) {
        let times = self.leadership;
        if times.leader_lease <= times.renew_deadline {
            layers.refuse("leader_lease_ms", "must be over renew_deadline_ms");
        }
        if times.renew_deadline * 10 <= times.retry * 12 {
            layers.refuse("renew_deadline_ms", "must be over 1.2 × retry_ms");
        }
        if times.margin >= times.leader_lease {
            layers.refuse("margin_ms", "must be below leader_lease_ms");
        }
        if self.tokens.is_none() && !self.listen.ip().is_loopback() {
            layers.refuse(
                "listen",
                format!(
                    "{} can be reached from other machines: give a token file (--tokens), or listen on 127.0.0.1",
                    self.listen
                ),
            );
        }
        if self.admin_listen == Some(self.listen) && self.listen.port() != 0 {
            layers.refuse("admin_listen", "must differ from listen");
        }
    }

    /// The configuration with which a region begins.
    pub fn region(&self, region: &RegionId) -> &RegionConfig {
        self.regions.get(region).unwrap_or(&self.region_defaults)
    }

    /// The configuration in force as a TOML file, without secrets.
    pub fn effective(&self) -> String {
        let times = self.leadership;
        let path = |path: &Path| Value::String(path.display().to_string());
        let ms = |time: Duration| Value::Integer(time.as_millis() as i64);
        let mut table = Table::new();
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                table.insert(key.into(), value);
            }
        };
        set("listen", Some(self.listen.to_string().into()));
        set(
            "admin_listen",
            self.admin_listen.map(|a| a.to_string().into()),
        );
        set("store", Some(format!("{:?}", self.store).into()));
        set("node_id", Some(self.node_id.to_string().into()));
        set("tokens", self.tokens.as_deref().map(path));
        set("record", self.record.as_ref().map(|r| path(&r.dir)));
        let max_bytes = self.record.as_ref().map(|r| r.max_bytes as i64);
        set("record_max_bytes", max_bytes.map(Value::Integer));
        set("leader_lease_ms", Some(ms(times.leader_lease)));
        set("renew_deadline_ms", Some(ms(times.renew_deadline)));
        set("retry_ms", Some(ms(times.retry)));
        set("margin_ms", Some(ms(times.margin)));
        set("store_deadline_ms", Some(ms(self.store_deadline)));
        set("tls_cert", self.tls.as_ref().map(|tls| path(&tls.cert)));
        set("tls_key", self.tls.as_ref().map(|tls| path(&tls.key)));
        set(
            "max_connections",
            Some(Value::Integer(self.max_connections as i64)),
        );
        set("max_regions", Some(Value::Integer(self.max_regions as i64)));
        set("log_format", Some(self.log_format.name().into()));
        set("log", Some(self.log.clone().into()));
        set(
            "region_defaults",
            Value::try_from(&self.region_defaults).ok(),
        );
        let mut text = table.to_string();
        if !self.demand_models.is_empty() {
            let files = self.demand_models.iter();
            let files = files.map(|(region, file)| (region.to_string(), path(file)));
            let _ = write!(text, "\n[demand_models]\n{}", files.collect::<Table>());
        }
        for (region, config) in &self.regions {
            let values = toml::to_string(config).unwrap_or_default();
            let _ = write!(text, "\n[regions.{region}]\n{values}");
        }
        text
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not an address such as 127.0.0.1:7070"))
}

#[expect(clippy::unnecessary_wraps, reason = "one of the readers of a setting")]
fn path(text: &str) -> Result<PathBuf, String> {
    Ok(text.into())
}

fn node_of(listen: SocketAddr) -> NodeId {
    // an address is printable ASCII without '/': never refused
    NodeId::new(&listen.to_string()).unwrap_or_else(|_| node_of(DEFAULT_LISTEN))
}

fn region(layers: &mut Layers, path: &str, base: &RegionConfig, table: Table) -> RegionConfig {
    let patch = match serde_json::to_value(table) {
        Ok(serde_json::Value::Object(patch)) => patch,
        _ => Map::new(),
    };
    // each setting for itself, so that one error hides no other
    let mut whole = true;
    for (name, value) in &patch {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        match base.patched(&alone) {
            Ok(patched) => {
                for clamp in &patched.clamped {
                    let detail = format!(
                        "{} is outside its limits (nearest: {})",
                        clamp.asked, clamp.used
                    );
                    layers.refuse(&format!("{path}.{}", clamp.path), detail);
                    whole = false;
                }
            }
            // whether settings fit together is seen below
            Err(errors) if errors.iter().all(|error| error.code == "cross_check") => {}
            Err(errors) => {
                whole = false;
                refuse_all(layers, path, errors);
            }
        }
    }
    match base.patched(&patch) {
        Ok(patched) => return patched.config,
        Err(errors) if whole => refuse_all(layers, path, errors),
        Err(_) => {}
    }
    base.clone()
}

fn refuse_all(layers: &mut Layers, path: &str, errors: Vec<FieldError>) {
    for FieldError {
        path: name, detail, ..
    } in errors
    {
        layers.refuse(&format!("{path}.{name}"), detail);
    }
}

fn regions(layers: &mut Layers, base: &RegionConfig) -> BTreeMap<RegionId, RegionConfig> {
    let mut regions = BTreeMap::new();
    for (name, value) in layers.table("regions") {
        let path = format!("regions.{name}");
        match (RegionId::new(&name), value) {
            (Ok(id), Value::Table(table)) => {
                let config = region(layers, &path, base, table);
                regions.insert(id, config);
            }
            (Err(error), _) => layers.refuse(&path, error.to_string()),
            (Ok(_), _) => layers.refuse(&path, "must be a table"),
        }
    }
    regions
}

fn demand_models(layers: &mut Layers) -> BTreeMap<RegionId, PathBuf> {
    let mut models = BTreeMap::new();
    for (name, value) in layers.table("demand_models") {
        let path = format!("demand_models.{name}");
        match (RegionId::new(&name), value) {
            (Ok(id), Value::String(file)) => {
                models.insert(id, file.into());
            }
            (Err(error), _) => layers.refuse(&path, error.to_string()),
            (Ok(_), _) => layers.refuse(&path, "must be a text, the path of a model file"),
        }
    }
    models
}

impl StoreAddress {
    fn read(text: &str) -> Result<Self, String> {
        if text == "memory" {
            return Ok(Self::Memory);
        }
        // the text may hold a password: it is not repeated
        RedisAddress::parse(text)
            .map(Self::Redis)
            .map_err(|error| format!("must be memory, or an address of a Redis: {error}"))
    }
}

impl fmt::Debug for StoreAddress {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Redis(address) => address.fmt(f),
        }
    }
}

impl LogFormat {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("must be text or json".into()),
        }
    }

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: &str, env: &[(&str, &str)], flags: Flags) -> Result<ServeConfig, ConfigErrors> {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        ServeConfig::load(Some((Path::new("kheya.toml"), file)), env, flags)
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let file = "listen = \"127.0.0.1:1\"\nmax_connections = 10\nretry_ms = 900";
        let env = [
            ("KHEYA_LISTEN", "127.0.0.1:2"),
            ("KHEYA_MAX_CONNECTIONS", "20"),
            ("HOME", "/"),
        ];
        let config = load(file, &env, vec![("listen", "127.0.0.1:3".into())]).unwrap();
        assert_eq!(config.listen.port(), 3);
        assert_eq!(config.node_id.as_str(), "127.0.0.1:3");
        assert_eq!(config.max_connections, 20);
        assert_eq!(config.leadership.retry, Duration::from_millis(900));
    }

    #[test]
    fn every_error_is_told_at_once_with_its_source() {
        let file = "lisen = \"x\"\nmax_connections = \"10\"\nleader_lease_ms = 3000\ntls_cert = \"c\"\n\
                    [region_defaults]\nwindow_ms = 99999\nbogus = 1\n[regions.Dhaka]\nwindow_ms = 1000\n\
                    [regions.sylhet]\nlease_ms = 3000\n\
                    [demand_models]\nDhaka = \"d.json\"\nsylhet = 7";
        let env = [
            ("KHEYA_STORE", "postgres://me:secret@x"),
            ("KHEYA_TYPO", "1"),
        ];
        let errors = load(file, &env, vec![("listen", "0.0.0.0:7070".into())]).unwrap_err();
        let text = errors.to_string();
        for part in [
            "kheya.toml: lisen: no such setting",
            "kheya.toml: max_connections: must be a whole number",
            "kheya.toml: leader_lease_ms: must be over renew_deadline_ms",
            "tls_key: tls_cert and tls_key",
            "kheya.toml: region_defaults.bogus: no such setting",
            "kheya.toml: region_defaults.window_ms: 99999 is outside its limits",
            "kheya.toml: regions.Dhaka: a region id",
            "kheya.toml: regions.sylhet.lease_ms: must be at least offer_window_ms",
            "kheya.toml: demand_models.Dhaka: a region id",
            "kheya.toml: demand_models.sylhet: must be a text, the path of a model file",
            "KHEYA_STORE: must be memory, or an address of a Redis: must begin with redis://",
            "KHEYA_TYPO: no such setting",
            "--listen: 0.0.0.0:7070 can be reached from other machines",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("secret"));
    }

    #[test]
    fn the_effective_configuration_is_a_file_that_says_the_same_without_secrets() {
        let file = "store = \"redis://me:secret@cache:6379\"\n[region_defaults]\nwindow_ms = 2000\n\
                    [regions.dhaka]\nmax_pending = 7\n[demand_models]\ndhaka = \"models/demand.json\"";
        let config = load(file, &[], Vec::new()).unwrap();
        let text = config.effective();
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("redis://me:***@cache:6379"), "{text}");
        let again = load(&text, &[], Vec::new()).unwrap();
        assert_eq!(again.regions, config.regions);
        assert_eq!(again.region_defaults, config.region_defaults);
        assert_eq!(again.demand_models, config.demand_models);
        assert_eq!(again.demand_models.len(), 1);
        let dhaka = config.region(&RegionId::new("dhaka").unwrap());
        assert_eq!((dhaka.max_pending, dhaka.window_ms.get()), (7, 2000));
    }

    #[test]
    fn a_public_address_needs_tokens() {
        let flags = vec![
            ("listen", "0.0.0.0:7070".into()),
            ("tokens", "t.toml".into()),
        ];
        assert!(load("", &[], flags).is_ok());
    }
}
