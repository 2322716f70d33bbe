//! Asking several servers the same thing.

use std::{future::Future, sync::Arc};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{Instant, timeout_at};

/// Asks all at once; ends when more than half have answered, when all have answered or failed, or
/// when time is up, whatever is first.
///
/// So one server that is gone delays nothing, and one that was cut off from the others and knows
/// the past alone is heard together with most of the others.
pub(super) async fn gather<T>(
    asks: Vec<impl Future<Output = Result<T, Arc<str>>>>,
    until: Instant,
) -> (Vec<T>, Option<Arc<str>>) {
    let mut asks: FuturesUnordered<_> = asks.into_iter().collect();
    let enough = asks.len() / 2 + 1;
    let mut answers = Vec::new();
    let mut failure = None;
    while answers.len() < enough
        && let Ok(Some(answer)) = timeout_at(until, asks.next()).await
    {
        match answer {
            Ok(answer) => answers.push(answer),
            Err(reason) => failure = Some(reason),
        }
    }
    (answers, failure)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    type Asked = std::pin::Pin<Box<dyn Future<Output = Result<u8, Arc<str>>>>>;

    fn after(ms: u64, answer: Result<u8, Arc<str>>) -> Asked {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            answer
        })
    }

    #[tokio::test(start_paused = true)]
    async fn most_answers_are_enough_and_silence_ends_in_time() {
        let start = Instant::now();
        let until = start + Duration::from_millis(100);
        let asks = vec![after(1, Ok(1)), after(2, Ok(2)), after(10_000, Ok(3))];
        assert_eq!(gather(asks, until).await, (vec![1, 2], None));
        assert!(start.elapsed() < Duration::from_millis(10));

        let lost: Arc<str> = "lost".into();
        let asks = vec![after(1, Err(lost.clone())), after(2, Ok(2))];
        assert_eq!(gather(asks, until).await, (vec![2], Some(lost)));

        let asks = vec![after(10_000, Ok(1)), after(2, Ok(2))];
        assert_eq!(gather(asks, until).await, (vec![2], None));
        assert!(start.elapsed() < Duration::from_millis(110));
    }
}
