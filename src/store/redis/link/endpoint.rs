//! Where a server listens, as people and servers write it.

use std::{fmt, sync::Arc};

use super::address::AddressError;

/// Most servers that an address may name.
pub(super) const MAX_ENDPOINTS: usize = 64;

/// Where something listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

impl Endpoint {
    pub(super) fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// `host`, `host:port`, `[::1]` or `[::1]:port`.
    pub(super) fn read(text: &str, default_port: u16) -> Result<Self, AddressError> {
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

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Endpoints with commas between them, each once.
pub(super) fn read_endpoints(text: &str, default_port: u16) -> Result<Vec<Endpoint>, AddressError> {
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

fn port_number(text: &str) -> Result<u16, AddressError> {
    match digits(text).and_then(|text| text.parse().ok()) {
        Some(port @ 1..) => Ok(port),
        _ => Err(AddressError::Port),
    }
}

/// A number without the sign that `parse` would accept.
pub(super) fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|b| b.is_ascii_digit()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
