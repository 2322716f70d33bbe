//! The suite that the embedded store passes too.

use super::server::OnServer;
use crate::store::{StoreOptions, conformance::cases};

async fn conforms(on: OnServer) {
    // cases look at both sides of an instant
    on.stop_clocks();
    for case in cases() {
        case.check(&on).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_redis_store_conforms() {
    conforms(OnServer::start(StoreOptions::default()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_redis_store_conforms_on_a_cluster() {
    conforms(OnServer::start_cluster(StoreOptions::default()).await).await;
}
