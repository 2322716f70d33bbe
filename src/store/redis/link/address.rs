//! Where Redis is: a server, Sentinel or Cluster, with its credentials, as one text.

use std::{fmt, path::PathBuf, sync::Arc};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Most servers that an address may name.
const MAX_ENDPOINTS: usize = 64;

/// What is encoded when an address is printed.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

const SERVER_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

/// The address of a Redis, checked.
///
/// - `redis://[user:password@]host[:port][/database]`
/// - `redis+sentinel://[user:password@]host[:port],…/service[/database]`, where the credentials are
///   those of the servers; those of the sentinels are `?sentinel_user=…&sentinel_password=…`
/// - `redis+cluster://[user:password@]host[:port],…`
///
/// `rediss` in the place of `redis` means TLS, for sentinels too; `?ca=…` names a PEM file of
/// authorities (absent: those of the machine), `?cert=…&key=…` a client certificate. What is not a
/// letter, digit or one of `-._~` in a user, a password or a path is percent-encoded.
///
/// It is printed with `***` for each password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    pub(super) topology: Topology,
    pub(super) credentials: Credentials,
    pub(super) database: u16,
    /// Absent: no TLS.
    pub(super) tls: Option<TlsPaths>,
}

/// How the primary of a key is found.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Topology {
    /// It is this server.
    Server(Endpoint),
    /// Sentinels know it.
    Sentinel {
        /// Where they are.
        sentinels: Vec<Endpoint>,
        /// The name under which they watch the primary.
        service: Arc<str>,
        /// Their own credentials.
        credentials: Credentials,
    },
    /// The slot of the key says it.
    Cluster(Vec<Endpoint>),
}

/// Where something listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

/// Who we are to a server; both absent: nobody.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Credentials {
    pub(super) user: Option<Arc<str>>,
    pub(super) password: Option<Arc<str>>,
}

/// PEM files of a TLS client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TlsPaths {
    /// Authorities; absent: those of the machine.
    pub(super) ca: Option<PathBuf>,
    /// Client certificate and key.
    pub(super) client: Option<(PathBuf, PathBuf)>,
}

/// Why a text is no address of a Redis. It repeats nothing of the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Another scheme, or none.
    #[error("must begin with redis://, redis+sentinel:// or redis+cluster:// (rediss… for TLS)")]
    Scheme,
    /// No host, an empty one, or one with a character that no host has.
    #[error("a host is missing or malformed")]
    Host,
    /// Not in 1..=65535.
    #[error("a port is not a number in 1..=65535")]
    Port,
    /// Several hosts for a single server.
    #[error("several hosts need redis+sentinel:// or redis+cluster://")]
    SeveralHosts,
    /// More hosts than anybody has.
    #[error("more than {MAX_ENDPOINTS} hosts")]
    TooManyHosts,
    /// A user or password that is not percent-encoded UTF-8, or holds a control character.
    #[error("user or password are not percent-encoded text")]
    Credentials,
    /// A user without a password.
    #[error("a user is given without a password")]
    UserAlone,
    /// Sentinel without a service name.
    #[error("the service name is missing: redis+sentinel://host,…/service")]
    Service,
    /// Not in 0..=65535.
    #[error("the database is not a number in 0..=65535")]
    Database,
    /// A cluster has database 0 alone.
    #[error("a cluster has no databases: nothing may follow its hosts")]
    ClusterPath,
    /// A query option that does not exist, is given twice or does not fit the scheme.
    #[error("unknown, repeated or unfit option {0:?}")]
    Option(String),
    /// One of `cert` and `key` alone.
    #[error("cert and key are given together")]
    ClientPair,
    /// Everything after a `#`.
    #[error("'#' must be written %23")]
    Fragment,
}

impl AddressError {
    /// Only what looks like the name of an option is repeated: a stray `?` may stand in a password.
    fn option(name: &str) -> Self {
        let plain = name.len() <= 20 && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'_'));
        Self::Option(if plain {
            name.to_owned()
        } else {
            String::new()
        })
    }
}

impl RedisAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// The first thing that is wrong with it, without repeating its text.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Scheme)?;
        let (scheme, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err(AddressError::Scheme),
        };
        if rest.contains('#') {
            return Err(AddressError::Fragment);
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (userinfo, hosts) = match authority.rsplit_once('@') {
            Some((userinfo, hosts)) => (Some(userinfo), hosts),
            None => (None, authority),
        };
        let credentials = userinfo.map_or(Ok(Credentials::default()), Credentials::read)?;
        let mut options = Options::read(query)?;
        let (topology, database) = match kind {
            "" => {
                let endpoints = endpoints(hosts, SERVER_PORT)?;
                let [endpoint] =
                    <[Endpoint; 1]>::try_from(endpoints).map_err(|_| AddressError::SeveralHosts)?;
                (Topology::Server(endpoint), database(path)?)
            }
            "sentinel" => {
                let sentinels = endpoints(hosts, SENTINEL_PORT)?;
                let (service, rest) = path.split_once('/').unwrap_or((path, ""));
                let service = decoded(service).map_err(|_| AddressError::Service)?;
                if service.is_empty() {
                    return Err(AddressError::Service);
                }
                let user = options.take("sentinel_user");
                let password = options.take("sentinel_password");
                let credentials = Credentials::new(user, password)?;
                let topology = Topology::Sentinel {
                    sentinels,
                    service: service.into(),
                    credentials,
                };
                (topology, database(rest)?)
            }
            "cluster" => {
                if !path.is_empty() {
                    return Err(AddressError::ClusterPath);
                }
                (Topology::Cluster(endpoints(hosts, SERVER_PORT)?), 0)
            }
            _ => return Err(AddressError::Scheme),
        };
        let tls = if tls {
            Some(TlsPaths::read(&mut options)?)
        } else {
            None
        };
        options.finish()?;
        Ok(Self {
            topology,
            credentials,
            database,
            tls,
        })
    }
}

impl Credentials {
    fn new(user: Option<String>, password: Option<String>) -> Result<Self, AddressError> {
        let user = user.filter(|user| !user.is_empty());
        let password = password.filter(|password| !password.is_empty());
        if user.is_some() && password.is_none() {
            return Err(AddressError::UserAlone);
        }
        Ok(Self {
            user: user.map(Into::into),
            password: password.map(Into::into),
        })
    }

    fn read(userinfo: &str) -> Result<Self, AddressError> {
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        Self::new(Some(decoded(user)?), Some(decoded(password)?))
    }

    /// The text without the password, should a server have repeated it.
    pub(super) fn redact(&self, text: &str) -> String {
        match &self.password {
            Some(password) => text.replace(&**password, "***"),
            None => text.to_owned(),
        }
    }
}

impl TlsPaths {
    fn read(options: &mut Options) -> Result<Self, AddressError> {
        let client = match (options.take("cert"), options.take("key")) {
            (Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None) => None,
            _ => return Err(AddressError::ClientPair),
        };
        Ok(Self {
            ca: options.take("ca").map(Into::into),
            client,
        })
    }
}

/// What follows the `?`, taken one by one; what is left at the end is an error.
struct Options(Vec<(String, String)>);

impl Options {
    fn read(query: &str) -> Result<Self, AddressError> {
        let mut options = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if options.iter().any(|(known, _)| known == name) {
                return Err(AddressError::option(name));
            }
            options.push((name.to_owned(), decoded(value)?));
        }
        Ok(Self(options))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn finish(self) -> Result<(), AddressError> {
        match self.0.into_iter().next() {
            Some((name, _)) => Err(AddressError::option(&name)),
            None => Ok(()),
        }
    }
}

fn endpoints(text: &str, default_port: u16) -> Result<Vec<Endpoint>, AddressError> {
    let mut endpoints = Vec::new();
    for part in text.split(',') {
        let endpoint = Endpoint::read(part, default_port)?;
        if !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
        if endpoints.len() > MAX_ENDPOINTS {
            return Err(AddressError::TooManyHosts);
        }
    }
    Ok(endpoints)
}

impl Endpoint {
    pub(super) fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// `host`, `host:port`, `[::1]` or `[::1]:port`.
    fn read(text: &str, default_port: u16) -> Result<Self, AddressError> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or(AddressError::Host)?;
                if host.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(AddressError::Host);
                }
                let port = match rest.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if rest.is_empty() => None,
                    None => return Err(AddressError::Host),
                };
                (host, port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || host.len() > 255 || !host.chars().all(of_host) {
            return Err(AddressError::Host);
        }
        let port = port.map_or(Ok(default_port), port_number)?;
        Ok(Self::new(host, port))
    }

    /// `host:port` as a server writes it, an IPv6 host with or without brackets. A server that does
    /// not know its own host leaves it empty or `?`: then it is `asked`.
    pub(super) fn told(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port_number(port).ok()?;
        Some(match host {
            "" | "?" => Self {
                host: asked.host.clone(),
                port,
            },
            host => Self::new(host, port),
        })
    }
}

fn port_number(text: &str) -> Result<u16, AddressError> {
    match digits(text).and_then(|text| text.parse().ok()) {
        Some(port @ 1..) => Ok(port),
        _ => Err(AddressError::Port),
    }
}

fn database(path: &str) -> Result<u16, AddressError> {
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Ok(0),
        number => digits(number)
            .and_then(|text| text.parse().ok())
            .ok_or(AddressError::Database),
    }
}

/// A number without the sign that `parse` would accept.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|b| b.is_ascii_digit()).then_some(text)
}

fn decoded(text: &str) -> Result<String, AddressError> {
    let text = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| AddressError::Credentials)?;
    if text.chars().any(char::is_control) {
        return Err(AddressError::Credentials);
    }
    Ok(text.into_owned())
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Credentials {
    /// Whether there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.password.is_some() {
            "***"
        } else {
            "none"
        })
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints = match self {
            Self::Server(endpoint) => std::slice::from_ref(endpoint),
            Self::Sentinel {
                sentinels: endpoints,
                ..
            }
            | Self::Cluster(endpoints) => endpoints,
        };
        for (i, endpoint) in endpoints.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{endpoint}")?;
        }
        if let Self::Sentinel { service, .. } = self {
            write!(f, "/{}", encoded(service))?;
        }
        Ok(())
    }
}

impl fmt::Display for RedisAddress {
    /// The address with `***` for each password: an address of the same place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() {
            "rediss"
        } else {
            "redis"
        };
        let kind = match self.topology {
            Topology::Server(_) => "",
            Topology::Sentinel { .. } => "+sentinel",
            Topology::Cluster(_) => "+cluster",
        };
        write!(f, "{scheme}{kind}://")?;
        if self.credentials.password.is_some() {
            let user = self.credentials.user.as_deref().unwrap_or("");
            write!(f, "{}:***@", encoded(user))?;
        }
        write!(f, "{:?}", self.topology)?;
        if self.database != 0 {
            write!(f, "/{}", self.database)?;
        }
        let mut mark = '?';
        let mut option = |name: &str, value: Option<&str>| {
            let Some(value) = value else { return Ok(()) };
            let before = std::mem::replace(&mut mark, '&');
            write!(f, "{before}{name}={value}")
        };
        if let Topology::Sentinel { credentials, .. } = &self.topology {
            let user = credentials.user.as_deref().map(encoded);
            option("sentinel_user", user.as_deref())?;
            let password = credentials.password.as_ref().map(|_| "***");
            option("sentinel_password", password)?;
        }
        if let Some(tls) = &self.tls {
            let file = |file: &PathBuf| encoded(&file.to_string_lossy());
            let client = tls.client.as_ref();
            option("ca", tls.ca.as_ref().map(file).as_deref())?;
            option("cert", client.map(|(cert, _)| file(cert)).as_deref())?;
            option("key", client.map(|(_, key)| file(key)).as_deref())?;
        }
        Ok(())
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> RedisAddress {
        RedisAddress::parse(text).unwrap()
    }

    /// With what is printed for a password.
    fn hidden(mut address: RedisAddress) -> RedisAddress {
        let hide = |credentials: &mut Credentials| {
            credentials.password = credentials.password.take().map(|_| "***".into());
        };
        hide(&mut address.credentials);
        if let Topology::Sentinel { credentials, .. } = &mut address.topology {
            hide(credentials);
        }
        address
    }

    #[test]
    fn each_kind_of_address_is_read() {
        let server = parse("redis://cache");
        assert_eq!(
            server.topology,
            Topology::Server(Endpoint::new("cache", 6379))
        );
        assert_eq!(server.credentials, Credentials::default());
        assert_eq!((server.database, &server.tls), (0, &None));

        let server = parse("rediss://me:p%40ss@[::1]:7000/3?ca=/etc/ca.pem&key=/k&cert=/c");
        assert_eq!(
            server.topology,
            Topology::Server(Endpoint::new("::1", 7000))
        );
        assert_eq!(server.credentials.password.as_deref(), Some("p@ss"));
        assert_eq!(server.database, 3);
        let tls = server.tls.unwrap();
        assert_eq!(tls.ca, Some("/etc/ca.pem".into()));
        assert_eq!(tls.client, Some(("/c".into(), "/k".into())));

        let sentinel = parse("redis+sentinel://:pw@a,b:1/main/2?sentinel_password=s%26s");
        let Topology::Sentinel {
            sentinels,
            service,
            credentials,
        } = &sentinel.topology
        else {
            panic!("{sentinel}");
        };
        assert_eq!(
            sentinels,
            &[Endpoint::new("a", 26_379), Endpoint::new("b", 1)]
        );
        assert_eq!((&**service, sentinel.database), ("main", 2));
        assert_eq!(credentials.password.as_deref(), Some("s&s"));
        assert_eq!(sentinel.credentials.user, None);

        let cluster = parse("rediss+cluster://a:1,b:2,a:1");
        let nodes = vec![Endpoint::new("a", 1), Endpoint::new("b", 2)];
        assert_eq!(cluster.topology, Topology::Cluster(nodes));
        assert!(cluster.tls.is_some());
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_of_it_repeated() {
        for (text, error) in [
            ("cache:6379", AddressError::Scheme),
            ("http://cache", AddressError::Scheme),
            ("redis+ring://cache", AddressError::Scheme),
            ("redis://", AddressError::Host),
            ("redis://me:secret@", AddressError::Host),
            ("redis://a b", AddressError::Host),
            ("redis://[::1", AddressError::Host),
            ("redis://[cache]:1", AddressError::Host),
            ("redis://[::1]1", AddressError::Host),
            ("redis+cluster://a,,b", AddressError::Host),
            ("redis://cache:0", AddressError::Port),
            ("redis://cache:65536", AddressError::Port),
            ("redis://cache:+1", AddressError::Port),
            ("redis://cache:", AddressError::Port),
            ("redis://a,b", AddressError::SeveralHosts),
            ("redis://me@cache", AddressError::UserAlone),
            ("redis://me:%ff@cache", AddressError::Credentials),
            ("redis://me:a%0d%0ab@cache", AddressError::Credentials),
            ("redis://cache/one", AddressError::Database),
            ("redis://cache/-1", AddressError::Database),
            ("redis+sentinel://a,b", AddressError::Service),
            ("redis+sentinel://a,b/", AddressError::Service),
            ("redis+cluster://a/1", AddressError::ClusterPath),
            ("redis://me:sec#ret@cache", AddressError::Fragment),
            ("rediss://cache?cert=/c", AddressError::ClientPair),
            ("redis://cache?ca=/c", AddressError::Option("ca".into())),
            ("rediss://a?ca=1&ca=2", AddressError::Option("ca".into())),
            (
                "redis://a?sentinel_password=x",
                AddressError::Option("sentinel_password".into()),
            ),
        ] {
            let found = RedisAddress::parse(text).unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!found.to_string().contains("secret"), "{text}");
        }
        let many = (0..=MAX_ENDPOINTS)
            .map(|i| format!("h{i}"))
            .collect::<Vec<_>>()
            .join(",");
        let found = RedisAddress::parse(&format!("redis+cluster://{many}"));
        assert_eq!(found, Err(AddressError::TooManyHosts));
    }

    #[test]
    fn an_endpoint_as_a_server_tells_it() {
        let asked = Endpoint::new("seed", 1);
        let told = |text| Endpoint::told(text, &asked);
        assert_eq!(told("10.0.0.1:7000"), Some(Endpoint::new("10.0.0.1", 7000)));
        assert_eq!(told("::1:7000"), Some(Endpoint::new("::1", 7000)));
        assert_eq!(told("[::1]:7000"), Some(Endpoint::new("::1", 7000)));
        assert_eq!(told(":7000"), Some(Endpoint::new("seed", 7000)));
        assert_eq!(told("?:7000"), Some(Endpoint::new("seed", 7000)));
        assert_eq!(told("host:0"), None);
        assert_eq!(told("host"), None);
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader_and_what_is_printed_is_the_same_place(
            text in "redis[s]?(\\+(sentinel|cluster))?://[ -~é]{0,40}",
        ) {
            if let Ok(address) = RedisAddress::parse(&text) {
                let printed = address.to_string();
                prop_assert_eq!(RedisAddress::parse(&printed), Ok(hidden(address)), "{}", printed);
            }
        }

        #[test]
        fn any_password_survives_its_encoding_and_stays_hidden(password in "[ -~£€]{8,24}") {
            let encoded = percent_encoding::utf8_percent_encode(
                &password,
                percent_encoding::NON_ALPHANUMERIC,
            );
            for text in [
                format!("redis://me:{encoded}@cache/1"),
                format!("redis+cluster://me:{encoded}@a,b"),
                format!("redis+sentinel://me:{encoded}@a/x?sentinel_password={encoded}"),
            ] {
                let address = RedisAddress::parse(&text).unwrap();
                prop_assert_eq!(address.credentials.password.as_deref(), Some(&*password));
                let printed = address.to_string();
                prop_assert_eq!(RedisAddress::parse(&printed), Ok(hidden(address.clone())));
                for printed in [printed, format!("{address:?}")] {
                    prop_assert!(!printed.contains(&password), "{}", printed);
                    prop_assert!(!printed.contains(&encoded.to_string()), "{}", printed);
                }
            }
        }
    }
}
