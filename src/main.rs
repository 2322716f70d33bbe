//! The `kheya` command.

fn main() {}
