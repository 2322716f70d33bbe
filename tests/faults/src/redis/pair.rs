//! A primary and its replica behind one address, and the failover that loses what was acknowledged.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{RedisServer, RedisSettings};

/// What a failover lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostTail {
    /// Bytes of the replication stream that the new primary never had; zero if nothing was written
    /// since the replica stopped to follow.
    pub bytes: u64,
}

/// Two servers. Clients use one address, behind which the primary changes as behind a virtual IP:
/// the promoted replica moves to the primary's port.
#[derive(Debug)]
pub struct RedisPair {
    address: SocketAddr,
    roles: Mutex<Roles>,
}

#[derive(Debug)]
struct Roles {
    primary: Arc<RedisServer>,
    replica: Arc<RedisServer>,
    follows: bool,
}

impl RedisPair {
    /// Starts both, the replica following.
    pub fn start(settings: &RedisSettings) -> Self {
        let primary = Arc::new(settings.clone().start());
        let replica = Arc::new(settings.clone().start());
        replica.replica_of(&primary);
        Self {
            address: primary.address(),
            roles: Mutex::new(Roles {
                primary,
                replica,
                follows: true,
            }),
        }
    }

    /// Where clients find whoever is primary.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Where whoever is primary listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The primary of now.
    pub fn primary(&self) -> Arc<RedisServer> {
        self.roles().primary.clone()
    }

    /// The replica of now.
    pub fn replica(&self) -> Arc<RedisServer> {
        self.roles().replica.clone()
    }

    /// From here on the replica gets nothing, and the primary acknowledges as ever: what is written
    /// after this returns is lost by [`RedisPair::fail_over`].
    pub fn stop_following(&self) {
        let mut roles = self.roles();
        assert!(roles.follows, "the replica does not follow already");
        roles.replica.wait_caught_up(&roles.primary);
        roles.replica.pause();
        // what stands in the replica's socket would reach it after all
        let killed: u64 = roles.primary.call(&["CLIENT", "KILL", "TYPE", "replica"]);
        assert_eq!(killed, 1, "the replica was connected");
        roles.follows = false;
    }

    /// Kills the primary and puts the replica in its place, on the same address. If it had stopped
    /// to follow, everything that was acknowledged since is lost.
    pub fn fail_over(&self) -> LostTail {
        let mut roles = self.roles();
        let offset = |server: &RedisServer| {
            let told = server.info("replication", "master_repl_offset");
            told.and_then(|offset| offset.parse::<u64>().ok()).unwrap()
        };
        let has_replica = roles.follows || roles.replica.is_paused();
        assert!(has_replica, "a pair that failed over is healed first");
        let acknowledged = offset(&roles.primary);
        roles.primary.kill9();
        if !roles.follows {
            roles.replica.resume();
        }
        roles.replica.promote();
        let bytes = acknowledged.saturating_sub(offset(&roles.replica));
        let (served, spare) = (roles.primary.port(), roles.replica.port());
        roles.replica.move_to(served);
        let roles = &mut *roles;
        std::mem::swap(&mut roles.primary, &mut roles.replica);
        roles.follows = false;
        roles.replica.set_port(spare);
        LostTail { bytes }
    }

    /// The recipe as one call: acknowledged writes of `meanwhile` are lost.
    pub fn lose_tail<T>(&self, meanwhile: impl FnOnce() -> T) -> (T, LostTail) {
        self.stop_following();
        let done = meanwhile();
        (done, self.fail_over())
    }

    /// Makes two of them again: the server that is not primary follows the one that is, taking over
    /// its data.
    pub fn heal(&self) {
        let mut roles = self.roles();
        if roles.replica.is_paused() {
            roles.replica.resume();
        } else {
            roles.replica.restart();
        }
        roles.replica.replica_of(&roles.primary);
        roles.follows = true;
    }

    fn roles(&self) -> MutexGuard<'_, Roles> {
        self.roles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
