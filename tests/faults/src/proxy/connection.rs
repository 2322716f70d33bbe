//! One client's connection through the proxy.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Shared,
    control::{Begun, Towards},
    faults::{Chance, Fault},
    resp::{Command, Framer, is_push},
};

/// Where messages begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Commands and answers of Redis.
    Resp,
    /// What one read gives.
    Chunks,
}

/// Most messages of one direction that are on their way at once.
const ON_THE_WAY: usize = 10_000;

/// Longest time that a server takes to answer a late duplicate.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// What happens to the answer of a command that the server was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It reaches the client.
    Deliver,
    /// It is the second answer to a duplicate, of which the client must not know.
    Swallow,
    /// The connection breaks in its place.
    Break,
}

/// A message on its way.
#[derive(Debug)]
struct Sent {
    due: Instant,
    bytes: Vec<u8>,
}

pub(super) struct Connection {
    number: u64,
    shared: Arc<Shared>,
    begun: Begun,
    /// Of the commands that the server was given and has not answered, oldest first.
    fates: Mutex<VecDeque<Fate>>,
}

impl Connection {
    pub(super) fn new(number: u64, shared: Arc<Shared>) -> Self {
        Self {
            number,
            begun: shared.control.begin(),
            shared,
            fates: Mutex::default(),
        }
    }

    /// Carries bytes both ways until one side ends, a fault breaks the connection, or all are cut.
    pub(super) async fn carry(self, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.begun.upstream).await else {
            return;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (requests, on_way_there) = mpsc::channel(ON_THE_WAY);
        let (answers, on_way_back) = mpsc::channel(ON_THE_WAY);
        // what a client sent before it hung up is delivered, and answered to nobody
        let there = async {
            let read = self.read_requests(from_client, requests);
            let write = self.deliver(Towards::Server, on_way_there, to_server);
            match tokio::try_join!(read, write) {
                Ok(_) => std::future::pending().await,
                Err(broken) => broken,
            }
        };
        let back = async {
            let read = self.read_answers(from_server, answers);
            let write = self.deliver(Towards::Client, on_way_back, to_client);
            tokio::try_join!(read, write)
        };
        tokio::select! {
            _ = there => {}
            _ = back => {}
            () = self.shared.control.when(|state| state.cuts > self.begun.cuts) => {
                self.shared.faults.count(|injected| injected.cut += 1);
            }
        }
    }

    async fn read_requests(
        &self,
        mut from: OwnedReadHalf,
        on_way: mpsc::Sender<Sent>,
    ) -> io::Result<()> {
        let mut lane = Lane::new(self, Towards::Server);
        while let Some(request) = lane.read(&mut from).await? {
            let fault = {
                let command = Command::read(&request);
                let faults = &self.shared.faults;
                faults.drawn(&command, &mut lane.chance)
            };
            match fault {
                Some(Fault::LoseRequest) => {
                    self.shared
                        .faults
                        .count(|injected| injected.lost_requests += 1);
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                Some(Fault::LoseAnswer) => self.expect(Fate::Break),
                Some(Fault::Duplicate) => {
                    self.expect(Fate::Deliver);
                    lane.send(request.clone(), &on_way).await?;
                    self.expect(Fate::Swallow);
                }
                Some(Fault::DuplicateLate(after)) => {
                    tokio::spawn(repeat(self.shared.clone(), request.clone(), after));
                    self.expect(Fate::Deliver);
                }
                None => self.expect(Fate::Deliver),
            }
            lane.send(request, &on_way).await?;
        }
        Ok(())
    }

    async fn read_answers(
        &self,
        mut from: OwnedReadHalf,
        on_way: mpsc::Sender<Sent>,
    ) -> io::Result<()> {
        let mut lane = Lane::new(self, Towards::Client);
        while let Some(answer) = lane.read(&mut from).await? {
            let fate = if self.shared.framing == Framing::Resp && is_push(&answer) {
                Fate::Deliver
            } else {
                self.fates
                    .lock()
                    .unwrap()
                    .pop_front()
                    .unwrap_or(Fate::Deliver)
            };
            match fate {
                Fate::Deliver => lane.send(answer, &on_way).await?,
                Fate::Swallow => self
                    .shared
                    .faults
                    .count(|injected| injected.duplicated += 1),
                Fate::Break => {
                    self.shared
                        .faults
                        .count(|injected| injected.lost_answers += 1);
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            }
        }
        Ok(())
    }

    fn expect(&self, fate: Fate) {
        self.fates.lock().unwrap().push_back(fate);
    }

    /// Writes each message when it is due and its way is not held; ends the stream after the last.
    async fn deliver(
        &self,
        towards: Towards,
        mut on_way: mpsc::Receiver<Sent>,
        mut to: OwnedWriteHalf,
    ) -> io::Result<()> {
        while let Some(sent) = on_way.recv().await {
            if sent.due > Instant::now() {
                self.shared.faults.count(|injected| injected.delayed += 1);
                sleep_until(sent.due).await;
            }
            self.pass(towards).await;
            to.write_all(&sent.bytes).await?;
        }
        to.shutdown().await
    }

    /// Waits while a way is held.
    async fn pass(&self, towards: Towards) {
        let control = &self.shared.control;
        if control.now().way(towards).held {
            self.shared.faults.count(|injected| injected.held += 1);
            control
                .when(|state| !state.ways[towards as usize].held)
                .await;
        }
    }
}

/// One direction: its bytes cut into messages, its chance, its last message.
struct Lane<'a> {
    shared: &'a Shared,
    towards: Towards,
    framer: Framer,
    chance: Chance,
    piece: Vec<u8>,
    last_due: Instant,
}

impl<'a> Lane<'a> {
    fn new(connection: &'a Connection, towards: Towards) -> Self {
        let shared = &*connection.shared;
        Self {
            shared,
            towards,
            framer: Framer::default(),
            chance: shared.faults.chance(connection.number, towards as u64),
            piece: vec![0; 1 << 16],
            last_due: Instant::now(),
        }
    }

    /// The next message; none at the end of the stream.
    async fn read(&mut self, from: &mut OwnedReadHalf) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(frame) = self.framer.next() {
                return Ok(Some(frame));
            }
            let read = from.read(&mut self.piece).await?;
            match self.shared.framing {
                _ if read == 0 => return Ok(None),
                Framing::Resp => self.framer.push(&self.piece[..read]),
                Framing::Chunks => return Ok(Some(self.piece[..read].to_vec())),
            }
        }
    }

    /// Puts a message on its way, never before the one ahead of it.
    async fn send(&mut self, bytes: Vec<u8>, on_way: &mpsc::Sender<Sent>) -> io::Result<()> {
        let delay = self.shared.control.now().way(self.towards).delay;
        let delay = delay.drawn(self.chance.unit());
        if !delay.is_zero() {
            self.shared.faults.count(|injected| injected.delayed += 1);
        }
        let due = Instant::now() + delay;
        self.last_due = self.last_due.max(due);
        let sent = Sent {
            due: self.last_due,
            bytes,
        };
        let gone = |_| io::ErrorKind::BrokenPipe.into();
        on_way.send(sent).await.map_err(gone)
    }
}

/// Sends a command once more, long after the first, over a connection of its own.
async fn repeat(shared: Arc<Shared>, request: Vec<u8>, after: Duration) {
    sleep(after).await;
    let answered = async {
        let mut server = TcpStream::connect(shared.control.now().upstream).await?;
        server.write_all(&request).await?;
        let (mut framer, mut piece) = (Framer::default(), vec![0; 1 << 16]);
        while framer.next().is_none() {
            match server.read(&mut piece).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => framer.push(&piece[..read]),
            }
        }
        Ok::<_, io::Error>(())
    };
    if let Ok(Ok(())) = timeout(ANSWERS_WITHIN, answered).await {
        shared
            .faults
            .count(|injected| injected.duplicated_late += 1);
    }
}
