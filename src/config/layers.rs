//! Where a node's settings come from: a TOML file, the environment over it, flags over both.
//!
//! A setting is kept with its source, so that an error says where to mend it.

use std::{collections::BTreeMap, fmt, path::Path};

use toml::{Table, Value};

/// What the command line sets, by the name of the setting.
pub type Flags = Vec<(&'static str, String)>;

/// Prefix of the environment variables that are settings.
const PREFIX: &str = "KHEYA_";

/// Where a setting came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A key of the file.
    File(String),
    /// An environment variable.
    Environment,
    /// A flag.
    Flag,
    /// Nobody set it.
    Default,
}

/// One thing wrong with one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting.
    pub key: String,
    /// Where it came from.
    pub source: Source,
    /// What is wrong, and what would be right.
    pub detail: String,
}

/// Everything that is wrong with a node's settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct ConfigErrors(pub Vec<ConfigError>);

fn lines(errors: &[ConfigError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            source,
            detail,
        } = self;
        match source {
            Source::File(name) if key.is_empty() => write!(f, "{name}: {detail}"),
            Source::File(name) => write!(f, "{name}: {key}: {detail}"),
            Source::Environment => {
                write!(f, "{PREFIX}{}: {detail}", key.to_uppercase())
            }
            Source::Flag => write!(f, "--{}: {detail}", key.replace('_', "-")),
            Source::Default => write!(f, "{key}: {detail}"),
        }
    }
}

/// The settings as given, the strongest source of each, and what is wrong with them so far.
pub(super) struct Layers {
    values: BTreeMap<String, (Value, Source)>,
    sources: BTreeMap<String, Source>,
    pub(super) errors: Vec<ConfigError>,
}

impl Layers {
    /// Layers file, environment and flags. `known` are the settings, `ignored` the variables with
    /// our prefix that are read elsewhere.
    pub(super) fn new(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: Flags,
        known: &[&str],
        ignored: &[&str],
    ) -> Self {
        let mut layers = Self {
            values: BTreeMap::new(),
            sources: BTreeMap::new(),
            errors: Vec::new(),
        };
        if let Some((path, text)) = file {
            let source = Source::File(path.display().to_string());
            match text.parse::<Table>() {
                Ok(table) => {
                    for (key, value) in table {
                        layers.set(key, value, source.clone(), known);
                    }
                }
                Err(error) => layers.error("", source, error.to_string().trim_end().into()),
            }
        }
        let mut variables: Vec<_> = environment.into_iter().collect();
        variables.sort();
        for (name, text) in variables {
            let Some(key) = name.strip_prefix(PREFIX).map(str::to_lowercase) else {
                continue;
            };
            if !ignored.contains(&key.as_str()) {
                layers.set(key, Value::String(text), Source::Environment, known);
            }
        }
        for (key, text) in flags {
            layers.set(key.into(), Value::String(text), Source::Flag, known);
        }
        layers
    }

    fn set(&mut self, key: String, value: Value, source: Source, known: &[&str]) {
        if known.contains(&key.as_str()) {
            self.sources.insert(key.clone(), source.clone());
            self.values.insert(key, (value, source));
        } else {
            self.error(&key, source, "no such setting".into());
        }
    }

    fn error(&mut self, key: &str, source: Source, detail: String) {
        self.errors.push(ConfigError {
            key: key.into(),
            source,
            detail,
        });
    }

    /// Notes an error of a setting, wherever it came from.
    pub(super) fn refuse(&mut self, key: &str, detail: impl Into<String>) {
        let name = key.split('.').next().unwrap_or(key);
        let source = self.sources.get(name).cloned().unwrap_or(Source::Default);
        self.error(key, source, detail.into());
    }

    /// A text setting, read by `read`.
    pub(super) fn text<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (value, source) = self.values.remove(key)?;
        let read = match &value {
            Value::String(text) => read(text),
            _ => Err("must be a text".into()),
        };
        read.map_err(|detail| self.error(key, source, detail)).ok()
    }

    /// A whole number within limits; `default` when it is not given or wrong.
    pub(super) fn integer(&mut self, key: &str, min: i64, max: i64, default: i64) -> i64 {
        let Some((value, source)) = self.values.remove(key) else {
            return default;
        };
        let number = match &value {
            Value::Integer(number) => Some(*number),
            // the environment and flags have nothing but text
            Value::String(text) if !matches!(source, Source::File(_)) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if (min..=max).contains(&number) => number,
            _ => {
                let detail = format!("must be a whole number within {min} and {max}");
                self.error(key, source, detail);
                default
            }
        }
    }

    /// A table of the file.
    pub(super) fn table(&mut self, key: &str) -> Table {
        match self.values.remove(key) {
            None => Table::new(),
            Some((Value::Table(table), _)) => table,
            Some((_, source)) => {
                self.error(key, source, "must be a table of the file".into());
                Table::new()
            }
        }
    }
}
