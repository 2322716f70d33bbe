use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use kheya_faults::{RedisServer, waiting::wait_until};

/// Starts two servers, one of them stopped, tells of them, and waits to be killed.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn stands_there_with_servers() {
    let (one, other) = (RedisServer::start(), RedisServer::start());
    other.pause();
    for server in [&one, &other] {
        println!("directory {}", server.directory().display());
    }
    println!("ready");
    thread::sleep(Duration::from_mins(1));
}

#[test]
fn nothing_outlives_a_killed_test_binary() {
    let mut tests = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("left_behind::stands_there_with_servers")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(tests.stdout.take().unwrap()).lines();
    let told: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| line != "ready")
        .filter_map(|line| Some(line.split_once("directory ")?.1.to_owned()))
        .collect();
    assert_eq!(told.len(), 2);
    let serving = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let called = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
        let dead = |path: &std::path::Path| told.iter().any(|told| path.starts_with(told));
        called.filter(|path| dead(path)).count()
    };
    // each server, and the shell that watches it
    assert_eq!(serving(), 4);
    tests.kill().unwrap();
    tests.wait().unwrap();
    wait_until("the servers go", Duration::from_secs(5), || serving() == 0);
    wait_until("their directories go", Duration::from_secs(5), || {
        !told.iter().any(|directory| fs::exists(directory).unwrap())
    });
}
