use super::declare;

declare!();
