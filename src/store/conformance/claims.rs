//! The table of claims: confirm, release, complete, extend, lease expiry.

use super::{World, declare, world::request};
use crate::protocol::{ClaimState, DriverState, EventType, RequestState};

declare!(a_request_goes_its_whole_way);

async fn a_request_goes_its_whole_way(world: &World<'_>) {
    let claim = world.assign("r", "d").await;
    assert_eq!(world.state("r").await, Some(RequestState::Assigned));
    assert_eq!(world.driver_state("d").await, Some(DriverState::Offered));
    let confirmed = world.confirm(&claim).await.unwrap();
    assert_eq!(confirmed.state, ClaimState::OnTrip);
    assert_eq!(world.driver_state("d").await, Some(DriverState::OnTrip));
    let completed = world.complete(&claim).await.unwrap();
    assert_eq!(completed.state, ClaimState::Available);
    assert_eq!(world.state("r").await, Some(RequestState::Confirmed));
    assert_eq!(world.driver_state("d").await, Some(DriverState::Available));
    assert_eq!(
        world.story("r").await,
        [
            EventType::Requested,
            EventType::Assigned,
            EventType::Confirmed,
            EventType::Completed
        ]
    );
    let view = world
        .store()
        .request(&world.region, &request("r"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(view.attempts, 1);
    assert_eq!(view.assignment.unwrap().fence, claim.fence);
}
