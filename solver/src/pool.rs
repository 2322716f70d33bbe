//! Two pieces of work side by side, where that costs nothing.

/// Does both: side by side on a thread of a rayon pool, one after the other on any other thread.
///
/// From outside a pool, `rayon::join` sleeps until the pool has woken up and done both, on a busy
/// machine for longer than a solve takes.
pub(crate) fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    if rayon::current_thread_index().is_some() {
        rayon::join(a, b)
    } else {
        (a(), b())
    }
}
