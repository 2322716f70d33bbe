//! The faults of a schedule: drawn from its seed, injected while the load is on, counted, healed.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use kheya_faults::{Delay, Fault, Often, Towards};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::{
    calls::{Asked, Told},
    chance::Chance,
    check::Loss,
    load::{self, Load},
    stage::{NODES, Redis, Stage},
    watching,
};

/// The kinds of schedules, in turn by seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    LeaderKilled,
    LeaderStopped,
    NodesBlink,
    FollowerKilled,
    Terminated,
    RedisBlinks,
    RedisStalls,
    RedisRestarted,
    RedisEmpty,
    PowerCut,
    TailLost,
    SlowLeader,
    AnswersLost,
    RequestsLost,
    Duplicates,
    Partition,
    ClockForward,
    ClockBack,
    Storm,
    StormWithLoss,
}

impl Kind {
    const ALL: [Self; 20] = [
        Self::LeaderKilled,
        Self::LeaderStopped,
        Self::NodesBlink,
        Self::FollowerKilled,
        Self::Terminated,
        Self::RedisBlinks,
        Self::RedisStalls,
        Self::RedisRestarted,
        Self::RedisEmpty,
        Self::PowerCut,
        Self::TailLost,
        Self::SlowLeader,
        Self::AnswersLost,
        Self::RequestsLost,
        Self::Duplicates,
        Self::Partition,
        Self::ClockForward,
        Self::ClockBack,
        Self::Storm,
        Self::StormWithLoss,
    ];

    pub(crate) fn of(seed: u64) -> Self {
        Self::ALL[(seed % Self::ALL.len() as u64) as usize]
    }

    /// A seed whose schedule is of this kind.
    pub(crate) fn seed(self, round: u64) -> u64 {
        let place = Self::ALL.iter().position(|kind| *kind == self).unwrap();
        round * Self::ALL.len() as u64 + place as u64
    }

    pub(crate) fn needs_replica(self) -> bool {
        self == Self::TailLost
    }
}

/// How often each fault was injected.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// Injects the faults of one schedule.
pub(crate) struct Director<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) load: &'a Load,
    pub(crate) on: &'a Handle,
    pub(crate) chance: Chance,
    pub(crate) counts: Counts,
    pub(crate) losses: Vec<Loss>,
    pub(crate) clock_set_back: bool,
}

impl Director<'_> {
    fn count(&mut self, fault: &'static str) {
        *self.counts.entry(fault).or_default() += 1;
    }

    fn rest(&mut self, least_ms: u64, most_ms: u64) {
        let more = self.chance.below((most_ms - least_ms) as usize) as u64;
        thread::sleep(Duration::from_millis(least_ms + more));
    }

    /// Injects what the kind stands for, from the first fault to the last.
    pub(crate) fn inject(&mut self, kind: Kind) {
        match kind {
            Kind::LeaderKilled => {
                for _ in 0..2 {
                    let leader = self.leader_in_mid_window();
                    self.kill(leader);
                    self.rest(300, 1_200);
                    self.stage.nodes[leader].restart();
                    self.rest(300, 900);
                }
            }
            Kind::LeaderStopped => self.stop_leader(),
            Kind::NodesBlink => {
                for _ in 0..5 {
                    let node = self.chance.below(NODES);
                    self.stage.nodes[node].pause();
                    self.count("node stopped, shorter than its lease");
                    self.rest(100, 900);
                    self.stage.nodes[node].resume();
                    self.rest(50, 200);
                }
            }
            Kind::FollowerKilled => {
                let leader = self.leader();
                let follower = (leader + 1 + self.chance.below(NODES - 1)) % NODES;
                self.kill(follower);
                self.rest(300, 900);
                self.stage.nodes[follower].restart();
                let other = (0..NODES).find(|node| ![leader, follower].contains(node));
                self.kill(other.unwrap());
                self.rest(300, 900);
            }
            Kind::Terminated => {
                for _ in 0..2 {
                    let node = if self.chance.below(2) == 0 {
                        self.leader()
                    } else {
                        self.chance.below(NODES)
                    };
                    let ended = self.stage.nodes[node].terminate();
                    assert!(ended.success(), "n{node} ended with {ended}");
                    self.count("node ended in order");
                    self.rest(50, 400);
                    self.stage.nodes[node].restart();
                    self.rest(100, 400);
                }
            }
            Kind::RedisBlinks => {
                for _ in 0..4 {
                    self.pause_redis(100, 900, "redis stopped, shorter than a lease");
                    self.rest(150, 400);
                }
            }
            Kind::RedisStalls => {
                self.pause_redis(1_700, 2_600, "redis stopped, longer than a lease");
            }
            Kind::RedisRestarted | Kind::RedisEmpty | Kind::PowerCut | Kind::TailLost => {
                self.lose(kind);
            }
            Kind::SlowLeader => self.slow_leader(),
            Kind::AnswersLost => self.faulty_links(Fault::LoseAnswer, 12),
            Kind::RequestsLost => self.faulty_links(Fault::LoseRequest, 12),
            Kind::Duplicates => {
                let late = self.chance.below(2_000) as u64 + 100;
                self.faulty_links(Fault::DuplicateLate(Duration::from_millis(late)), 6);
                self.faulty_links(Fault::Duplicate, 4);
            }
            Kind::Partition => self.partition(),
            Kind::ClockForward => {
                let by = Duration::from_millis(5_000 + self.chance.below(55_000) as u64);
                self.advance(by);
                self.rest(600, 1_200);
                self.advance(Duration::from_secs(1));
                self.rest(600, 1_200);
            }
            Kind::ClockBack => self.set_clock_back(),
            Kind::Storm => self.storm(),
            Kind::StormWithLoss => {
                self.storm();
                let losses = [Kind::RedisRestarted, Kind::RedisEmpty, Kind::PowerCut];
                let loss = losses[self.chance.below(losses.len())];
                self.lose(loss);
            }
        }
    }

    /// A region comes to be at some moment from now on.
    pub(crate) fn let_late_region_be(&mut self) {
        let after = Duration::from_millis(self.chance.below(800) as u64);
        let begin = self.load.beginning();
        self.on.spawn(async move {
            tokio::time::sleep(after).await;
            begin();
        });
    }

    /// Ends every fault. What was injected on the links is counted now.
    pub(crate) fn heal(&mut self) {
        for proxy in &self.stage.proxies {
            proxy.heal();
        }
        let redis = self.stage.redis.primary();
        if redis.is_paused() {
            redis.resume();
        }
        for node in &self.stage.nodes {
            if node.ended().is_some() {
                node.restart();
            }
        }
        for injected in self.stage.proxies.iter().map(kheya_faults::Proxy::injected) {
            for (fault, times) in [
                ("message delayed", injected.delayed),
                ("message held in a black hole", injected.held),
                ("request lost", injected.lost_requests),
                ("answer lost", injected.lost_answers),
                ("command duplicated", injected.duplicated),
                ("command duplicated late", injected.duplicated_late),
                ("connection refused", injected.refused),
                ("connection cut", injected.cut),
            ] {
                if times > 0 {
                    *self.counts.entry(fault).or_default() += times;
                }
            }
        }
    }

    /// The quarantine after a loss: its end comes by the store's clock, which is moved there.
    pub(crate) fn sit_out_quarantine(&mut self) {
        // calls of the quarantine itself: some are served, new ones are not
        self.rest(600, 900);
        self.stage.advance(Duration::from_secs(61));
        self.load
            .store_is_ahead(self.stage.redis.primary().offset_us());
        self.rest(1_200, 1_500);
    }

    /// The dispatch tier tells which trips are under way, as far as it knows; those that the store
    /// had lost get new fences, with which they end.
    pub(crate) fn reconcile(&mut self) {
        for world in &self.load.worlds {
            let Some(region) = self.on.block_on(self.load.caller.read(&world.region)) else {
                continue;
            };
            let told = self.load.caller.witness.told();
            let trips = trips_under_way(&told, &world.region);
            let body = json!({
                "generation": region["generation"],
                "on_trip": trips,
                "pending": [],
                "done": true,
            });
            let path = format!("{}/reconcile", world.region);
            let (caller, node) = (&self.load.caller, self.chance.below(NODES));
            let sent = caller.send(node, Method::POST, &path, Some(body.to_string()));
            let answer = self.on.block_on(sent);
            let answer = answer.json();
            let restored = answer["restored"].as_array().into_iter().flatten();
            for trip in restored {
                *self.counts.entry("trip told after a loss").or_default() += 1;
                let text = |name: &str| trip[name].as_str().unwrap().to_owned();
                let fence = trip["fence"].as_u64().unwrap();
                let (world, driver, request) =
                    (world.clone(), text("driver_id"), text("request_id"));
                self.on.spawn(async move {
                    load::complete(&world, driver, request, fence).await;
                });
            }
        }
    }

    /// The node that leads a drawn region.
    fn leader(&mut self) -> usize {
        let region = self.draw_region();
        self.leader_of(&region)
    }

    fn draw_region(&mut self) -> String {
        // the last one is not there yet
        let drawn = self.chance.below(self.load.worlds.len() - 1);
        self.load.worlds[drawn].region.clone()
    }

    pub(crate) fn leader_of(&self, region: &str) -> usize {
        self.on
            .block_on(watching::leader_of(&self.load.caller, region))
    }

    /// Waits until the leader of a drawn region is in the middle of a window, which its slow link
    /// makes long.
    fn leader_in_mid_window(&mut self) -> usize {
        let region = self.draw_region();
        let leader = self.leader_of(&region);
        let slow = Delay::Fixed(Duration::from_millis(25));
        self.stage.proxies[leader].delay(Towards::Server, slow);
        let redis = self.stage.redis.primary();
        if watching::wait_taken(&redis, &region, Duration::from_secs(2)) {
            self.count("struck in mid-window");
        }
        leader
    }

    fn kill(&mut self, node: usize) {
        self.stage.nodes[node].kill9();
        self.stage.proxies[node].delay(Towards::Server, Delay::None);
        self.count("node killed");
    }

    /// The leader stands still in mid-window for longer than its lease, and then goes on as if
    /// nothing had been.
    fn stop_leader(&mut self) {
        let leader = self.leader_in_mid_window();
        self.stage.nodes[leader].pause();
        self.count("node stopped, longer than its lease");
        self.rest(1_800, 2_600);
        self.stage.nodes[leader].resume();
        self.rest(200, 500);
        self.stage.proxies[leader].delay(Towards::Server, Delay::None);
    }

    fn pause_redis(&mut self, least_ms: u64, most_ms: u64, fault: &'static str) {
        let redis = self.stage.redis.primary();
        redis.pause();
        self.count(fault);
        self.rest(least_ms, most_ms);
        redis.resume();
    }

    /// The leader's way to the store takes so long that it loses windows, and perhaps more.
    fn slow_leader(&mut self) {
        let leader = self.leader();
        let slow = Delay::Between(Duration::from_millis(20), Duration::from_millis(250));
        self.stage.proxies[leader].delay(Towards::Server, slow);
        self.rest(800, 1_500);
        self.stage.proxies[leader].delay(Towards::Client, slow);
        self.rest(800, 1_500);
    }

    fn faulty_links(&mut self, fault: Fault, one_in: u64) {
        for proxy in &self.stage.proxies {
            // as a client would repeat them: transactions are not sent twice by anybody
            proxy.inject_where(fault, Often::OneIn(one_in), |command| command.is("EVALSHA"));
        }
        self.rest(1_200, 1_800);
    }

    /// One node, the leader, has no way to the store and does not know why; the others have.
    fn partition(&mut self) {
        let leader = self.leader_in_mid_window();
        let proxy = &self.stage.proxies[leader];
        match self.chance.below(3) {
            0 => proxy.black_hole(),
            1 => proxy.hold(Towards::Server),
            _ => proxy.hold(Towards::Client),
        }
        self.count("node partitioned");
        self.rest(1_800, 2_600);
        // what was sent meanwhile arrives now
        self.stage.proxies[leader].let_through();
        self.rest(300, 600);
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.stage.advance(by);
        self.load
            .store_is_ahead(self.stage.redis.primary().offset_us());
        self.count("clock set forward");
    }

    fn set_clock_back(&mut self) {
        let redis = self.stage.redis.primary();
        let by_us = 500_000 + self.chance.below(20_000_000) as i64;
        redis.set_offset_us(-by_us);
        self.load.store_is_ahead(-by_us);
        self.count("clock set back");
        self.clock_set_back = true;
        self.rest(1_200, 2_000);
        if by_us > 3_000_000 {
            redis.set_offset_us(0);
            self.load.store_is_ahead(0);
            self.count("clock set forward");
        }
    }

    /// Three faults on top of each other.
    fn storm(&mut self) {
        let first = self.leader_in_mid_window();
        let proxy = &self.stage.proxies[self.chance.below(NODES)];
        let faults = [
            Fault::LoseAnswer,
            Fault::LoseRequest,
            Fault::Duplicate,
            Fault::DuplicateLate(Duration::from_millis(700)),
        ];
        let fault = faults[self.chance.below(4)];
        proxy.inject_where(fault, Often::OneIn(8), |command| command.is("EVALSHA"));
        self.stage.nodes[first].pause();
        self.count("node stopped, longer than its lease");
        self.rest(200, 600);
        let second = (first + 1 + self.chance.below(NODES - 1)) % NODES;
        match self.chance.below(3) {
            0 => self.kill(second),
            1 => {
                self.stage.proxies[second].black_hole();
                self.count("node partitioned");
            }
            _ => self.pause_redis(100, 500, "redis stopped, shorter than a lease"),
        }
        self.rest(1_200, 1_800);
        self.stage.nodes[first].resume();
        self.rest(200, 500);
    }

    /// The store's data begins a new life.
    pub(crate) fn lose(&mut self, kind: Kind) {
        // the late region may be there already, or not
        self.rest(0, 1_200);
        let redis = self.stage.redis.primary();
        let began = Instant::now();
        let of_writes = match kind {
            Kind::RedisRestarted => {
                redis.kill9();
                self.rest(50, 600);
                redis.restart();
                self.count("redis killed and restarted");
                false
            }
            Kind::RedisEmpty => {
                redis.restart_empty();
                self.count("redis restarted empty");
                true
            }
            Kind::PowerCut => {
                let bytes = 1 + self.chance.below(60_000) as u64;
                redis.lose_power(bytes);
                self.count("power cut");
                true
            }
            _ => {
                let Redis::Pair(pair) = &self.stage.redis else {
                    panic!("only a pair fails over");
                };
                pair.stop_following();
                self.rest(300, 900);
                // the clocks of successive primaries differ
                let differ = self.chance.below(10_000_000) as i64 - 5_000_000;
                pair.replica().set_offset_us(differ);
                let lost = pair.fail_over();
                assert!(lost.bytes > 0, "the failover lost nothing");
                self.load.store_is_ahead(differ);
                self.clock_set_back |= differ < 0;
                self.count("replica promoted without the last writes");
                true
            }
        };
        self.losses.push(Loss {
            began,
            over: Instant::now(),
            of_writes,
        });
    }

    /// Whether each region shows that it is quarantined.
    pub(crate) fn quarantine_is_told(&self) -> Vec<String> {
        let mut silent = Vec::new();
        let told = self.load.caller.witness.told();
        for world in &self.load.worlds {
            let was_there = |told: &Told| {
                told.region == world.region && told.is_answered_before(self.losses[0].began)
            };
            if !told.iter().any(was_there) {
                continue;
            }
            let give_up = Instant::now() + Duration::from_secs(3);
            loop {
                let found = self.on.block_on(self.load.caller.read(&world.region));
                if found
                    .as_ref()
                    .is_some_and(|region| region["quarantined_until_ms"].is_i64())
                {
                    break;
                }
                if Instant::now() >= give_up {
                    let found = found.unwrap_or(Value::Null);
                    silent.push(format!(
                        "{} does not show its quarantine: {found}",
                        world.region
                    ));
                    break;
                }
                thread::sleep(Duration::from_millis(30));
            }
        }
        silent
    }
}

/// Trips that the dispatch tier knows to have begun, and not to have ended.
fn trips_under_way(told: &[Told], region: &str) -> Vec<Value> {
    let succeeded = |wanted: &'static str| {
        let told = told.iter().filter(move |told| told.region == region);
        told.filter_map(move |told| match &told.asked {
            Asked::Claim {
                verb,
                driver,
                request,
                fence,
            } if *verb == wanted && told.known()?.outcome.is_ok() => {
                Some((driver.clone(), request.clone(), *fence))
            }
            _ => None,
        })
    };
    let ended: BTreeSet<_> = succeeded("complete").collect();
    let begun: BTreeSet<_> = succeeded("confirm").collect();
    begun
        .difference(&ended)
        .map(|(driver, request, _)| json!({"driver_id": driver, "request_id": request}))
        .collect()
}
