//! Model files of learned demand on the command line.

use std::{fs, io::Read as _, path::Path, sync::Arc};

use super::Failure;
use crate::demand::{DemandCounts, DemandModel};

/// Most bytes of a model file: a year of a large city is a tenth of that.
const MAX_BYTES: u64 = 256 << 20;

/// Reads the model file that `asked` (a flag or a setting) names.
pub(super) fn read_model(asked: &str, file: &Path) -> Result<Arc<DemandModel>, Failure> {
    let refused = |detail: &dyn std::fmt::Display| {
        Failure::Input(format!("{asked} {}: {detail}", file.display()))
    };
    let mut text = String::new();
    let open = fs::File::open(file).map_err(|error| refused(&error))?;
    let mut bounded = open.take(MAX_BYTES + 1);
    bounded
        .read_to_string(&mut text)
        .map_err(|error| refused(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refused(&format_args!(
            "is over {} MiB long",
            MAX_BYTES >> 20
        )));
    }
    let counts = DemandCounts::from_json(&text).map_err(|error| refused(&error))?;
    Ok(Arc::new(DemandModel::new(&counts)))
}
