//! The suite that the embedded store passes too.

use super::server::OnServer;
use crate::store::{StoreOptions, conformance::cases};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_redis_store_conforms() {
    let harness = OnServer::start(StoreOptions::default()).await;
    // cases look at both sides of an instant
    harness.server.stop_clock();
    for case in cases() {
        case.check(&harness).await;
    }
}
