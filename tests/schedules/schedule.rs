//! One schedule from its seed to its verdict, and the test that runs many.

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::runtime::{Handle, Runtime};

use crate::{
    calls::Caller,
    chance::Chance,
    check::{self, Evidence, Tally},
    faults::{Counts, Director, Kind},
    late::{Late, LateWrites},
    load::{Load, WINDOWS_MS},
    post_mortem,
    stage::{BINARY, SHORT, Stage},
    watching::{counted_breaches, wait_ended, wait_sealed},
};

/// Schedules of a normal run: each kind three times.
const SCHEDULES: u64 = 60;

/// Schedules at once: they wait more than they work.
const AT_ONCE: usize = 3;

/// Regions of a schedule; one more comes to be when the faults have begun.
const REGIONS: usize = 2;

/// Breaches told of each schedule that fails; the rest is written down.
const TOLD: usize = 8;

/// Below this a schedule shows nothing.
const LEAST_ACCEPTED: usize = 40;
const LEAST_CONFIRMED: usize = 15;
const LEAST_OWN: usize = 2;

/// All that was accepted ends so soon after the last fault is healed: the longest lease, two windows
/// with budget and grace, and a second each for nodes to look around and for a busy machine.
const HEALED_WITHIN: Duration =
    Duration::from_millis(3_500 + 2 * (WINDOWS_MS[2] as u64 + 350) + 2_000);

/// What came of a schedule.
pub(crate) struct Verdict {
    pub(crate) broken: Vec<String>,
    counts: Counts,
    tally: Tally,
    late: Late,
    healed: Duration,
}

/// What came of many.
#[derive(Default)]
struct Sum {
    counts: Counts,
    tally: Tally,
    late: Late,
    healed: Vec<Duration>,
    failed: Vec<(u64, Vec<String>)>,
}

impl Sum {
    fn add(&mut self, seed: u64, ran: thread::Result<Verdict>) {
        match ran {
            Ok(verdict) => {
                for (fault, times) in verdict.counts {
                    *self.counts.entry(fault).or_default() += times;
                }
                self.tally.add(&verdict.tally);
                self.late.add(verdict.late);
                self.healed.push(verdict.healed);
                if !verdict.broken.is_empty() {
                    self.failed.push((seed, verdict.broken));
                }
            }
            Err(panic) => {
                let told = panic.downcast_ref::<String>().cloned();
                let told = told.unwrap_or_else(|| "a panic".into());
                self.failed.push((seed, vec![told]));
            }
        }
    }

    fn tell(&self) {
        println!("injected: {:#?}", self.counts);
        println!("checked: {:#?}", self.tally);
        println!("writes that came too late: {:?}", self.late);
        let mut healed = self.healed.clone();
        healed.sort_unstable();
        if let (Some(middle), Some(last)) = (healed.get(healed.len() / 2), healed.last()) {
            println!("all ended after healing: median {middle:.1?}, longest {last:.1?}");
        }
        for (seed, broken) in &self.failed {
            let kind = Kind::of(*seed);
            println!(
                "seed {seed} ({kind:?}), again with: \
                 SCHEDULE={seed} cargo test --test schedules every_promise"
            );
            for told in broken.iter().take(TOLD) {
                println!("    {told:.1000}");
            }
            println!("    {}", broken.last().map_or("", String::as_str));
        }
    }
}

#[test]
fn every_promise_holds_under_seeded_faults() {
    let (first, count) = match env::var("SCHEDULE") {
        Ok(seed) => (seed.parse().unwrap(), 1),
        Err(_) => (
            0,
            env::var("KHEYA_SCHEDULES").map_or(SCHEDULES, |n| n.parse().unwrap()),
        ),
    };
    let started = Instant::now();
    let runtime = Runtime::new().unwrap();
    let next = AtomicU64::new(first);
    let sum = Mutex::new(Sum::default());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(count as usize) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let ran = catch_unwind(AssertUnwindSafe(|| {
                        run(seed, runtime.handle(), Path::new(BINARY))
                    }));
                    sum.lock().unwrap().add(seed, ran);
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap();
    println!("{count} schedules in {:.0?}", started.elapsed());
    sum.tell();
    let Sum { failed, late, .. } = sum;
    let seeds: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
    assert!(
        failed.is_empty(),
        "{} schedules failed: {seeds:?}",
        seeds.len()
    );
    assert!(
        count < SCHEDULES || late.claims_refused > 0 && late.replaced_refused > 0,
        "no write ever came too late: the schedules show nothing of that"
    );
}

pub(crate) fn run(seed: u64, on: &Handle, binary: &Path) -> Verdict {
    let kind = Kind::of(seed);
    let started = Instant::now();
    let stage = Stage::start(seed, kind.needs_replica(), &SHORT, binary);
    let late_writes = LateWrites::listen(&stage);
    let caller = Caller::new(stage.urls());
    let regions: Vec<String> = (0..=REGIONS)
        .map(|region| format!("s{seed}-{region}"))
        .collect();
    let mut load = Load::begin(
        on,
        &caller,
        &regions[..REGIONS],
        &regions[REGIONS..],
        seed,
        1.0,
    );
    load.tune(on);
    let mut director = Director {
        stage: &stage,
        load: &load,
        on,
        chance: Chance::new(seed),
        counts: Counts::new(),
        losses: Vec::new(),
        clock_set_back: false,
    };
    for region in &regions[..REGIONS] {
        director.leader_of(region);
    }
    thread::sleep(Duration::from_millis(700));
    director.let_late_region_be();
    director.inject(kind);
    let mut broken = Vec::new();
    director.heal();
    if !director.losses.is_empty() {
        broken.extend(director.quarantine_is_told());
        director.reconcile();
        director.sit_out_quarantine();
    }
    let healing = Instant::now();
    let Director {
        counts,
        losses,
        clock_set_back,
        ..
    } = director;
    on.block_on(load.end_riders());
    let left = on.block_on(wait_ended(&caller, &regions, HEALED_WITHIN));
    let healed = healing.elapsed();
    on.block_on(load.end());
    broken.extend(left);
    wait_sealed(&stage.redis.primary(), &regions);
    let (late, accepted) = late_writes.send_again(&stage.redis.primary());
    broken.extend(accepted);

    let mut tally = Tally::default();
    let mut all = Vec::new();
    for world in &load.worlds {
        let evidence = on.block_on(Evidence::collect(&caller, world, &losses));
        let evidence = Evidence {
            clock_set_back,
            ..evidence
        };
        let findings = check::check(&evidence);
        tally.add(&findings.tally);
        broken.extend(findings.broken);
        all.push(evidence);
    }
    broken.extend(on.block_on(check::no_double_claims(&caller)));
    broken.extend(counted_breaches(&stage.redis.primary(), &regions));
    let injected: u64 = counts.values().sum();
    if injected == 0 {
        broken.push("invalid: nothing was injected".into());
    }
    if tally.accepted < LEAST_ACCEPTED
        || tally.confirmed < LEAST_CONFIRMED
        || tally.own_claims < LEAST_OWN
    {
        broken.push(format!("invalid: too little load: {tally:?}"));
    }
    broken.extend(panics(&stage));
    if !broken.is_empty() {
        let name = format!("schedule-{seed}");
        let directory = post_mortem::write_down(&name, started, &all, &stage, &broken);
        broken.push(format!("all of it is in {}", directory.display()));
    }
    println!(
        "seed {seed} {kind:?}: {:.1?}, healed {healed:.1?}, {late:?}, {tally:?}{}",
        started.elapsed(),
        if broken.is_empty() { "" } else { " BROKEN" }
    );
    Verdict {
        broken,
        counts,
        tally,
        late,
        healed,
    }
}

/// Panics of nodes.
fn panics(stage: &Stage) -> Vec<String> {
    let mut panics = Vec::new();
    for (number, node) in stage.nodes.iter().enumerate() {
        let words = node.stderr();
        let lines = words.lines().filter(|line| line.contains("panicked"));
        panics.extend(lines.map(|line| format!("n{number} panicked: {line}")));
    }
    panics
}
