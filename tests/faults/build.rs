//! Compiles the clock shim; the library carries it in itself, so that test binaries share no file.

#![expect(
    clippy::unwrap_used,
    reason = "a build without a C compiler fails by panicking"
)]

use std::{env, fs, path::PathBuf, process::Command};

const SOURCE: &str = "src/redis/clock_shim.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CC");
    let shim = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join("clock_shim.so");
    if env::var("CARGO_CFG_TARGET_OS").unwrap() != "linux" {
        // other systems build the workspace, but have no LD_PRELOAD and no /proc
        fs::write(shim, []).unwrap();
        return;
    }
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-o"])
        .arg(&shim)
        .arg(SOURCE)
        .status()
        .unwrap();
    assert!(
        compiled.success(),
        "{} refused {SOURCE}",
        compiler.display()
    );
}
