//! Events as clients read them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    domain::{CostMs, DurationMs, RegionId, UnixMs},
    protocol::{Cursor, Event, EventPage, EventType, Reason, Source},
};

/// A change. Clients ignore types and fields that they do not know.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventBody {
    /// Its place in the outbox; opaque.
    pub cursor: String,
    /// What happened.
    #[schema(value_type = String)]
    pub r#type: EventType,
    /// When, by the store's clock.
    #[schema(value_type = i64)]
    pub at_ms: UnixMs,
    /// Where.
    pub region: String,
    /// The request concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request_id: Option<String>,
    /// The driver concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub driver_id: Option<String>,
    /// The claim's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fence: Option<u64>,
    /// Travel time to the pickup.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub eta_s: Option<f64>,
    /// Cost of the pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cost_s: Option<f64>,
    /// End of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub lease_until_ms: Option<UnixMs>,
    /// Its length.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lease_ms: Option<i64>,
    /// The region's window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub window_seq: Option<u64>,
    /// How it was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub source: Option<Source>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub reason: Option<Reason>,
    /// The name of the token that changed the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub actor: Option<Arc<str>>,
    /// What changed in the configuration: `{"name":{"from":…,"to":…}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub changes: Option<Value>,
    /// The configuration's new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub config_version: Option<u64>,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventsPage {
    /// The events, in order.
    pub events: Vec<EventBody>,
    /// Where to go on; always usable.
    pub next: String,
}

impl EventBody {
    /// The event as a page of a region tells it.
    pub(crate) fn new(region: &RegionId, page: &EventPage, event: &Event) -> Self {
        let cursor = Cursor {
            generation: page.generation,
            id: event.id,
        };
        let changes = event.changes.as_ref();
        Self {
            cursor: cursor.to_string(),
            r#type: event.kind,
            at_ms: event.at_ms,
            region: region.to_string(),
            request_id: event.request_id.as_ref().map(ToString::to_string),
            driver_id: event.driver_id.as_ref().map(ToString::to_string),
            fence: event.fence.map(u64::from),
            eta_s: event.eta.map(DurationMs::as_seconds),
            cost_s: event.cost.map(CostMs::as_seconds),
            lease_until_ms: event.lease_until_ms,
            lease_ms: event.lease_ms.map(DurationMs::get),
            window_seq: event.window_seq.map(u64::from),
            source: event.source,
            reason: event.reason,
            actor: event.actor.clone(),
            changes: changes.and_then(|text| serde_json::from_str(text).ok()),
            config_version: event.config_version.map(u64::from),
        }
    }
}

impl EventsPage {
    pub(crate) fn new(region: &RegionId, page: &EventPage) -> Self {
        let event = |event| EventBody::new(region, page, event);
        Self {
            events: page.events.iter().map(event).collect(),
            next: page.next.to_string(),
        }
    }
}

/// The name of an event's type.
pub(crate) const fn type_name(kind: EventType) -> &'static str {
    match kind {
        EventType::Requested => "requested",
        EventType::Assigned => "assigned",
        EventType::Released => "released",
        EventType::LeaseExpired => "lease_expired",
        EventType::Confirmed => "confirmed",
        EventType::Completed => "completed",
        EventType::Cancelled => "cancelled",
        EventType::Expired => "expired",
        EventType::ConfigChanged => "config_changed",
        EventType::GenerationChanged => "generation_changed",
    }
}
