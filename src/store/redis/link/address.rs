//! Where Redis is: a server, Sentinel or Cluster, with its credentials, as one text.

use std::{fmt, path::PathBuf, sync::Arc};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::endpoint::{Endpoint, MAX_ENDPOINTS, digits, read_endpoints};

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
                let endpoints = read_endpoints(hosts, SERVER_PORT)?;
                let [endpoint] =
                    <[Endpoint; 1]>::try_from(endpoints).map_err(|_| AddressError::SeveralHosts)?;
                (Topology::Server(endpoint), database(path)?)
            }
            "sentinel" => {
                let sentinels = read_endpoints(hosts, SENTINEL_PORT)?;
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
                (Topology::Cluster(read_endpoints(hosts, SERVER_PORT)?), 0)
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

fn database(path: &str) -> Result<u16, AddressError> {
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Ok(0),
        number => digits(number)
            .and_then(|text| text.parse().ok())
            .ok_or(AddressError::Database),
    }
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
