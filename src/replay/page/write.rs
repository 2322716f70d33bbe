//! The page's way to the disk: whole or not at all.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Why the page could not be written.
#[derive(Debug, thiserror::Error)]
#[error("--report {}: {error}", .path.display())]
pub struct PageError {
    path: PathBuf,
    error: io::Error,
}

/// Writes a page.
///
/// # Errors
/// [`PageError`]; at `path` then stands what stood there before.
pub fn write_page(path: &Path, page: &str) -> Result<(), PageError> {
    let partial = partial(path);
    let written = fs::File::create(&partial)
        .and_then(|mut file| {
            file.write_all(page.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&partial);
        PageError {
            path: path.into(),
            error,
        }
    })
}

/// A name beside `path` that no other process uses.
fn partial(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}
