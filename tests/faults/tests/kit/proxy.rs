use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use kheya_faults::{
    Delay, Fault, Injected, Often, Proxy, RedisServer, Towards, waiting::wait_until,
};
use redis::{Connection, RedisResult};

use crate::{counted, increment};

const SEED: u64 = 7;

/// How long clients wait.
const PATIENCE: Duration = Duration::from_secs(1);

fn servers() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(server.address(), SEED);
    (server, proxy)
}

fn through(proxy: &Proxy) -> RedisResult<Connection> {
    let client = redis::Client::open(proxy.redis_url())?;
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

fn incr(connection: &mut Connection) -> RedisResult<i64> {
    redis::cmd("INCR").arg("n").query(connection)
}

fn only(change: impl FnOnce(&mut Injected)) -> Injected {
    let mut injected = Injected::default();
    change(&mut injected);
    injected
}

#[test]
fn without_faults_everything_arrives_and_nothing_is_counted() {
    let (_server, proxy) = servers();
    let mut connection = through(&proxy).unwrap();
    for n in 1..=1_000 {
        assert_eq!(incr(&mut connection).unwrap(), n);
    }
    let large = vec![b'x'; 3_000_000];
    let () = redis::cmd("SET")
        .arg("large")
        .arg(&large)
        .query(&mut connection)
        .unwrap();
    let back: Vec<u8> = redis::cmd("GET")
        .arg("large")
        .query(&mut connection)
        .unwrap();
    assert_eq!(back, large);
    let mut pipe = redis::pipe();
    for _ in 0..2_000 {
        pipe.cmd("INCR").arg("n");
    }
    let answers: Vec<i64> = pipe.query(&mut connection).unwrap();
    assert_eq!(answers, (1_001..=3_000).collect::<Vec<i64>>());
    assert_eq!(proxy.injected(), Injected::default());
}

#[test]
fn a_lost_answer_belongs_to_an_applied_write() {
    let (server, proxy) = servers();
    proxy.inject(Fault::LoseAnswer, Often::Next(1));
    let error = incr(&mut through(&proxy).unwrap()).unwrap_err();
    assert!(error.is_connection_dropped(), "{error}");
    assert_eq!(counted(&server), 1);
    assert_eq!(proxy.injected(), only(|injected| injected.lost_answers = 1));
    assert_eq!(incr(&mut through(&proxy).unwrap()).unwrap(), 2);
}

#[test]
fn a_lost_request_is_not_applied() {
    let (server, proxy) = servers();
    proxy.inject(Fault::LoseRequest, Often::Next(1));
    assert!(incr(&mut through(&proxy).unwrap()).is_err());
    assert_eq!(counted(&server), 0);
    assert_eq!(
        proxy.injected(),
        only(|injected| injected.lost_requests = 1)
    );
}

#[test]
fn a_duplicate_is_applied_twice_and_answered_once() {
    let (server, proxy) = servers();
    proxy.inject_where(Fault::Duplicate, Often::Next(2), |command| {
        command.is("INCR") && command.has(b"n")
    });
    let mut connection = through(&proxy).unwrap();
    let mut echo =
        |text: &str| -> String { redis::cmd("ECHO").arg(text).query(&mut connection).unwrap() };
    assert_eq!(
        echo("other commands are left alone"),
        "other commands are left alone"
    );
    assert_eq!(incr(&mut connection).unwrap(), 1);
    assert_eq!(incr(&mut connection).unwrap(), 3);
    assert_eq!(incr(&mut connection).unwrap(), 5);
    assert_eq!(counted(&server), 5);
    assert_eq!(proxy.injected(), only(|injected| injected.duplicated = 2));
}

#[test]
fn a_late_duplicate_arrives_after_the_client_has_gone_on() {
    let (server, proxy) = servers();
    proxy.inject(
        Fault::DuplicateLate(Duration::from_millis(100)),
        Often::Next(1),
    );
    let mut connection = through(&proxy).unwrap();
    assert_eq!(incr(&mut connection).unwrap(), 1);
    let () = redis::cmd("SET")
        .arg("n")
        .arg(10)
        .query(&mut connection)
        .unwrap();
    wait_until("the duplicate arrives", Duration::from_secs(2), || {
        counted(&server) == 11
    });
    wait_until("and is counted", Duration::from_secs(2), || {
        proxy.injected() == only(|injected| injected.duplicated_late = 1)
    });
}

#[test]
fn a_delay_is_latency_and_not_a_queue() {
    let (server, proxy) = servers();
    let mut connection = through(&proxy).unwrap();
    let delay = Duration::from_millis(30);
    proxy.delay(Towards::Server, Delay::Fixed(delay));
    proxy.delay(Towards::Client, Delay::Between(Duration::ZERO, delay));
    let started = Instant::now();
    let mut pipe = redis::pipe();
    for _ in 0..20 {
        pipe.cmd("INCR").arg("n");
    }
    let answers: Vec<i64> = pipe.query(&mut connection).unwrap();
    assert_eq!(answers, (1..=20).collect::<Vec<i64>>());
    let took = started.elapsed();
    assert!(took >= delay && took < delay * 15, "{took:?}");
    let injected = proxy.injected();
    assert!(injected.delayed >= 20, "{injected:?}");
    assert_eq!(counted(&server), 20);
}

#[test]
fn a_black_hole_is_silent_and_what_was_sent_into_it_arrives_later() {
    let (server, proxy) = servers();
    let mut connection = through(&proxy).unwrap();
    proxy.black_hole();
    assert!(incr(&mut connection).unwrap_err().is_timeout());
    assert!(TcpStream::connect(proxy.address()).is_ok(), "half open");
    drop(connection);
    assert_eq!(counted(&server), 0);
    proxy.let_through();
    wait_until("the command arrives", Duration::from_secs(2), || {
        counted(&server) == 1
    });
    assert_eq!(proxy.injected().lost_requests, 0);
    assert!(proxy.injected().held >= 1);
}

#[test]
fn answers_alone_can_be_held() {
    let (server, proxy) = servers();
    let mut connection = through(&proxy).unwrap();
    proxy.hold(Towards::Client);
    assert!(incr(&mut connection).unwrap_err().is_timeout());
    assert_eq!(counted(&server), 1);
}

#[test]
fn connections_are_refused_cut_and_accepted_again() {
    let (server, proxy) = servers();
    let mut connection = through(&proxy).unwrap();
    proxy.refuse(true);
    assert!(through(&proxy).is_err());
    assert_eq!(incr(&mut connection).unwrap(), 1, "open ones go on");
    proxy.cut();
    assert!(incr(&mut connection).is_err());
    proxy.heal();
    assert_eq!(incr(&mut through(&proxy).unwrap()).unwrap(), 2);
    assert_eq!(counted(&server), 2);
    let injected = proxy.injected();
    assert!(injected.refused >= 1 && injected.cut == 1, "{injected:?}");
}

#[test]
fn another_server_is_put_behind_the_proxy() {
    let (server, proxy) = servers();
    let other = RedisServer::start();
    assert_eq!(increment(&other, 10), 10);
    let mut stays = through(&proxy).unwrap();
    assert_eq!(incr(&mut stays).unwrap(), 1);
    proxy.switch_new(other.address());
    assert_eq!(incr(&mut stays).unwrap(), 2);
    assert_eq!(incr(&mut through(&proxy).unwrap()).unwrap(), 11);
    proxy.switch_upstream(server.address());
    assert!(incr(&mut stays).is_err());
    assert_eq!(incr(&mut through(&proxy).unwrap()).unwrap(), 3);
}

#[test]
fn the_same_seed_meets_the_same_commands() {
    let met = |seed| {
        let server = RedisServer::start();
        let proxy = Proxy::to_redis(server.address(), seed);
        proxy.inject(Fault::Duplicate, Often::OneIn(4));
        let mut connection = through(&proxy).unwrap();
        let answers: Vec<i64> = (0..100).map(|_| incr(&mut connection).unwrap()).collect();
        let duplicated = proxy.injected().duplicated;
        assert!((10..50).contains(&duplicated), "{duplicated}");
        answers
    };
    assert_eq!(met(1), met(1));
    assert_ne!(met(1), met(2));
}

#[test]
fn any_protocol_of_questions_and_answers_loses_its_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::to_any(listener.local_addr().unwrap(), SEED);
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 64];
        let read = stream.read(&mut request).unwrap();
        stream.write_all(b"answer").unwrap();
        request[..read].to_vec()
    });
    proxy.inject(Fault::LoseAnswer, Often::Next(1));
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.write_all(b"question").unwrap();
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(answer.is_empty());
    assert_eq!(served.join().unwrap(), b"question");
    assert_eq!(proxy.injected().lost_answers, 1);
}
