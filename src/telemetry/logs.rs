//! Logs: structured lines on stderr, as text or JSON. A line about a region or a window names it in
//! the fields `region` and `window_seq`.

use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::config::LogFormat;

/// Logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The directives cannot be read.
    #[error("log: {0}")]
    Directives(#[from] tracing_subscriber::filter::ParseError),
    /// Another subscriber is in place.
    #[error("log: {0}")]
    Taken(#[from] tracing_subscriber::util::TryInitError),
}

/// Sets up the process's logs. `directives` is a level, or such as `info,kheya::http=debug`.
///
/// # Errors
/// [`LogError`].
pub fn init_logs(format: LogFormat, directives: &str) -> Result<(), LogError> {
    let filter = EnvFilter::builder().parse(directives)?;
    let registry = tracing_subscriber::registry().with(filter);
    // colours are for people at a terminal, not for files and journals
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours);
    match format {
        LogFormat::Text => registry.with(layer).try_init()?,
        LogFormat::Json => {
            let layer = layer.json().flatten_event(true).with_current_span(true);
            registry.with(layer).try_init()?;
        }
    }
    Ok(())
}
