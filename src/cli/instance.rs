//! Reading the file of one instance: a window or an `.asn` text, told by its first byte.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
};

use kheya_solver::asn;

use super::Failure;
use crate::decision::{SolveOptions, WindowSnapshot, read_window};

/// What a file holds.
pub(super) enum Instance {
    /// A recorded snapshot, or the body of `POST /v1/solve`, with what it asks of the solver.
    Window(Box<WindowSnapshot>, SolveOptions),
    /// An `.asn` text, without names.
    Graph(asn::Instance),
}

/// What some editors put before the text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Instance {
    /// Reads a file; what is wrong with it is told with its name.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let mut file = open(path)?;
        if !is_json(&mut file, path)? {
            let name = path.display().to_string();
            let instance = asn::parse(file, &name).map_err(|e| Failure::input(&e))?;
            return Ok(Self::Graph(instance));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(|e| Failure::Input(named(path, e)))?;
        let (snapshot, asked) = read_window(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text))
            .map_err(|e| Failure::Input(named(path, e)))?;
        Ok(Self::Window(Box::new(snapshot), asked))
    }
}

/// Opens a file for reading; a directory is refused here, since reading one says something obscure.
fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).map_err(|error| Failure::Input(named(path, error)))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(Failure::Input(named(path, "is a directory"))),
        _ => Ok(BufReader::with_capacity(1 << 16, file)),
    }
}

/// Whether the first byte that is not white space opens a JSON object.
fn is_json(file: &mut BufReader<File>, path: &Path) -> Result<bool, Failure> {
    let start = file
        .fill_buf()
        .map_err(|error| Failure::Input(named(path, error)))?;
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    Ok(start.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{'))
}

/// A complaint with the file it is about.
pub(super) fn named(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
