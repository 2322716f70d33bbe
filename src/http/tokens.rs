//! The token file: who may call, read again whenever it changes.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::fields::{Errors, Object, Read, Wrong, choice, entries, list};
use crate::domain::RegionId;

/// Tokens of one file.
const MAX_TOKENS: usize = 10_000;
/// Regions that one token may name.
const MAX_REGIONS: usize = 10_000;
/// Longest name of a token, in characters.
const MAX_NAME: usize = 128;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Every GET.
    Read,
    /// GETs, and what the dispatch tier does: pings, requests, claims, windows, reconcile, solve.
    Dispatch,
    /// GETs, and tuning.
    Ops,
}

/// The regions of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Regions {
    /// Every region: `["*"]`.
    All,
    /// These alone, sorted.
    Named(Vec<RegionId>),
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's name: the actor of what it changes.
    pub name: Arc<str>,
    /// What it may do; absent where there is no access control.
    pub role: Option<Role>,
    /// Where.
    pub regions: Regions,
    digest: [u8; 32],
}

impl Caller {
    /// Everybody, where there is no access control (on loopback alone).
    pub fn local() -> Self {
        Self {
            name: "local".into(),
            role: None,
            regions: Regions::All,
            digest: [0; 32],
        }
    }

    /// Whether it may see and touch the region.
    pub fn sees(&self, region: &str) -> bool {
        match &self.regions {
            Regions::All => true,
            Regions::Named(named) => named.binary_search_by(|id| id.as_str().cmp(region)).is_ok(),
        }
    }
}

/// The tokens of one reading of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens(Vec<Caller>);

impl fmt::Debug for Tokens {
    /// Names alone: not even digests are logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|caller| &caller.name))
            .finish()
    }
}

/// The file is not a token file; nothing of it is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokensError(String);

impl FromStr for Tokens {
    type Err = TokensError;

    /// Reads `[[token]] name="…" sha256="…" role="…" regions=["…"]`, telling every error.
    fn from_str(text: &str) -> Result<Self, TokensError> {
        let failed = |error: &dyn fmt::Display| TokensError(error.to_string().trim_end().into());
        let table: toml::Table = text.parse().map_err(|error| failed(&error))?;
        let value = serde_json::to_value(table).map_err(|error| failed(&error))?;
        let mut errors = Errors::default();
        let mut tokens = Vec::new();
        if let Some(mut file) = Object::open(value, "", &mut errors) {
            let read = file.nested("token", entries).unwrap_or_default();
            file.close();
            if read.len() > MAX_TOKENS {
                return Err(TokensError(format!(
                    "at most {MAX_TOKENS} tokens are taken"
                )));
            }
            for (i, entry) in read.into_iter().enumerate() {
                tokens.extend(token(entry, &format!("token[{i}]"), &mut errors));
            }
        }
        for (i, caller) in tokens.iter().enumerate() {
            let earlier = &tokens[..i];
            if earlier
                .iter()
                .any(|other: &Caller| other.digest == caller.digest)
            {
                let detail = format!("the sha256 of {:?} stands twice", caller.name);
                errors.add("", "duplicate", &Value::Null, detail);
            }
        }
        if errors.is_empty() {
            Ok(Self(tokens))
        } else {
            Err(TokensError(errors.in_words()))
        }
    }
}

fn token(entry: Value, path: &str, errors: &mut Errors) -> Option<Caller> {
    let mut object = Object::open(entry, path, errors)?;
    let name = object.required("name", name);
    let digest = object.required("sha256", digest);
    let roles = [
        ("read", Role::Read),
        ("dispatch", Role::Dispatch),
        ("ops", Role::Ops),
    ];
    let role = object.required("role", choice(&roles));
    let regions = object.required("regions", regions);
    object.close();
    Some(Caller {
        name: name?,
        role: Some(role?),
        regions: regions?,
        digest: digest?,
    })
}

fn name(value: &Value) -> Read<Arc<str>> {
    match value.as_str() {
        Some(text) if (1..=MAX_NAME).contains(&text.chars().count()) => Ok(text.into()),
        _ => Err(Wrong {
            code: "out_of_range",
            detail: format!("must be a text of 1 to {MAX_NAME} characters"),
        }),
    }
}

fn regions(value: &Value) -> Read<Regions> {
    let text = |value: &Value| Ok(value.as_str().unwrap_or_default().to_owned());
    let names = list(MAX_REGIONS, text)(value)?;
    if names == ["*"] {
        return Ok(Regions::All);
    }
    let mut named = Vec::with_capacity(names.len());
    for name in &names {
        named.push(RegionId::new(name).map_err(|error| Wrong {
            code: "bad_id",
            detail: format!("{name:?}: {error}; or [\"*\"] alone for every region"),
        })?);
    }
    named.sort_unstable();
    Ok(Regions::Named(named))
}

fn digest(value: &Value) -> Read<[u8; 32]> {
    let mut digest = [0; 32];
    let text = value.as_str().unwrap_or_default().as_bytes();
    // the value is not told back: somebody may have put the token itself here
    let wrong = || Wrong {
        code: "out_of_range",
        detail: "must be the 64 hexadecimal digits of the token's SHA-256".into(),
    };
    if text.len() != 64 {
        return Err(wrong());
    }
    for (byte, digits) in digest.iter_mut().zip(text.chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(digest)
}

/// The tokens in force, and the file that they come from.
pub struct TokenFile {
    path: PathBuf,
    tokens: ArcSwap<Tokens>,
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokenFile").field(&self.path).finish()
    }
}

impl TokenFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// It cannot be read, or is not a token file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TokensError> {
        let path = path.into();
        let read = std::fs::read_to_string(&path).map_err(|error| TokensError(error.to_string()));
        let tokens = read.and_then(|text| text.parse());
        let named = |error: TokensError| TokensError(format!("{}: {error}", path.display()));
        let tokens: Tokens = tokens.map_err(named)?;
        Ok(Self {
            tokens: ArcSwap::from_pointee(tokens),
            path,
        })
    }

    /// Reads the file again; says whether its tokens changed. A broken file changes nothing.
    ///
    /// # Errors
    /// As [`TokenFile::open`]; the tokens in force stay.
    pub fn reload(&self) -> Result<bool, TokensError> {
        let new = Self::open(&self.path)?.tokens.into_inner();
        let changed = **self.tokens.load() != *new;
        if changed {
            self.tokens.store(new);
        }
        Ok(changed)
    }

    /// Whose token this is. Takes the same time for every token that is not known.
    pub fn identify(&self, token: &[u8]) -> Option<Caller> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.find(&digest)
    }

    /// What the caller may do by now; nothing when its token is gone.
    pub fn current(&self, caller: &Caller) -> Option<Caller> {
        self.find(&caller.digest)
    }

    fn find(&self, digest: &[u8; 32]) -> Option<Caller> {
        let tokens = self.tokens.load();
        let mut found = None;
        for caller in &tokens.0 {
            if bool::from(caller.digest.ct_eq(digest)) {
                found = Some(caller);
            }
        }
        found.cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn sha256(token: &str) -> String {
        let mut digits = String::new();
        for byte in Sha256::digest(token) {
            write!(digits, "{byte:02x}").unwrap();
        }
        digits
    }

    fn entry(name: &str, token: &str, role: &str, regions: &str) -> String {
        let sha256 = sha256(token);
        format!(
            "[[token]]\nname=\"{name}\"\nsha256=\"{sha256}\"\nrole=\"{role}\"\nregions={regions}\n"
        )
    }

    #[test]
    fn tokens_are_rotated_and_a_broken_file_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        std::fs::write(&path, entry("a", "one", "read", "[\"dhaka\"]")).unwrap();
        let file = TokenFile::open(&path).unwrap();
        let caller = file.identify(b"one").unwrap();
        assert!(caller.sees("dhaka") && !caller.sees("sylhet"));
        assert!(file.identify(b"two").is_none());

        let both = entry("a", "one", "read", "[\"dhaka\"]") + &entry("a", "two", "ops", "[\"*\"]");
        std::fs::write(&path, both).unwrap();
        assert_eq!(file.reload(), Ok(true));
        assert!(file.identify(b"one").is_some());
        assert!(file.identify(b"two").unwrap().sees("sylhet"));
        assert_eq!(file.reload(), Ok(false));

        std::fs::write(&path, "[[token]]\nname = 1").unwrap();
        assert!(file.reload().is_err());
        assert!(file.identify(b"one").is_some());

        std::fs::write(&path, entry("a", "two", "ops", "[\"*\"]")).unwrap();
        assert_eq!(file.reload(), Ok(true));
        assert!(file.current(&caller).is_none());
    }

    #[test]
    fn a_broken_file_tells_every_error_and_no_token() {
        let text = "[[token]]\nname=\"\"\nsha256=\"hunter2\"\nrole=\"admin\"\nregions=[\"Dhaka\"]\nttl=1\n[x]";
        let error = Tokens::from_str(text).unwrap_err().to_string();
        for part in [
            "token[0].name",
            "sha256",
            "role",
            "regions",
            "ttl",
            "x: is not known",
        ] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
        assert!(!error.contains("hunter2"));
        let twice = entry("a", "one", "read", "[]") + &entry("b", "one", "ops", "[]");
        assert!(
            Tokens::from_str(&twice)
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
    }
}
