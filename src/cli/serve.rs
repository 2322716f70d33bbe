//! `kheya serve`: the live service.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;

use super::{Failure, demand_model::read_model};
use crate::{
    config::{Flags, Recording, ServeConfig, StoreAddress},
    http::{AppParts, AppState, Server, TokenFile},
    leadership::LeaseTimes,
    record::{RecordOptions, RecordTrouble, Recorder, RecordingStore},
    store::{
        LinkOptions, MemoryStore, RedisAddress, RedisStore, Store,
        redis::{LinkError, OpenError, ServerReport},
    },
    telemetry::{Telemetry, init_logs},
    window::{Node, NodeOptions, StraightLineDecider},
};

/// Arguments of `kheya serve`. What stands in the file can be given as `KHEYA_…` in the environment
/// too; flags win over the environment, the environment over the file.
#[derive(Args)]
pub(super) struct ServeArgs {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "KHEYA_CONFIG")]
    config: Option<PathBuf>,
    /// Address of the API; 127.0.0.1:7070 by default
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address of /metrics, /docs and /openapi.json without tokens
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<String>,
    /// Where the regions live: `memory`, the default; redis://HOST:PORT,
    /// redis+sentinel://HOST:PORT,…/SERVICE or redis+cluster://HOST:PORT,…
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Name of this node; its listen address by default
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// Token file (TOML); without one the server listens on loopback only
    #[arg(long, value_name = "FILE")]
    tokens: Option<String>,
    /// Record every input and decision into this directory
    #[arg(long, value_name = "DIR")]
    record: Option<String>,
    /// Most bytes of the record; the oldest goes first
    #[arg(long, value_name = "BYTES")]
    record_max_bytes: Option<String>,
    /// Certificate chain (PEM), with --tls-key
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// Private key (PEM), with --tls-cert
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Log lines: text or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// What is logged: a level, or directives such as kheya=debug
    #[arg(long, value_name = "DIRECTIVES")]
    log: Option<String>,
    /// Print the effective configuration, without secrets, and end
    #[arg(long)]
    print_config: bool,
}

/// Longest time that open windows are given to end at shutdown.
const FINISH: Duration = Duration::from_secs(45);

/// How long a node waits at its start for a store that cannot be reached, and the pause between two
/// tries.
const STORE_PATIENCE: Duration = Duration::from_secs(10);
const STORE_PAUSE: Duration = Duration::from_millis(500);

pub(super) fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let config = load(args)?;
    if args.print_config {
        return super::print(&config.effective());
    }
    init_logs(config.log_format, &config.log).map_err(|error| Failure::input(&error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // a blocked solve holds one of these; every region may have one and the others go on
        .max_blocking_threads(config.max_regions.clamp(512, 4096))
        .build()
        .map_err(|error| Failure::broken(&error))?;
    runtime.block_on(run(Arc::new(config)))
}

fn load(args: &ServeArgs) -> Result<ServeConfig, Failure> {
    let text = match &args.config {
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
            Some((path.as_path(), text))
        }
        None => None,
    };
    let flags = [
        ("listen", &args.listen),
        ("admin_listen", &args.admin_listen),
        ("store", &args.store),
        ("node_id", &args.node_id),
        ("tokens", &args.tokens),
        ("record", &args.record),
        ("record_max_bytes", &args.record_max_bytes),
        ("tls_cert", &args.tls_cert),
        ("tls_key", &args.tls_key),
        ("log_format", &args.log_format),
        ("log", &args.log),
    ];
    let given = flags
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)));
    let flags: Flags = given.collect();
    let file = text.as_ref().map(|(path, text)| (*path, text.as_str()));
    ServeConfig::load(file, std::env::vars(), flags).map_err(|errors| Failure::input(&errors))
}

async fn run(config: Arc<ServeConfig>) -> Result<(), Failure> {
    let telemetry = Telemetry::install().map_err(|error| Failure::broken(&error))?;
    let tokens = match &config.tokens {
        Some(path) => {
            let tokens = TokenFile::open(path.clone()).map_err(|error| Failure::input(&error))?;
            Some(Arc::new(tokens))
        }
        None => None,
    };
    let mut demand_models = BTreeMap::new();
    for (region, file) in &config.demand_models {
        let model = read_model(&format!("demand_models.{region}"), file)?;
        demand_models.insert(region.clone(), model);
    }
    let recorder = match &config.record {
        Some(recording) => Some(record(&config, recording)?),
        None => None,
    };
    let store = open_store(&config, recorder.as_ref()).await?;
    let default_name = config.node_id.as_str() == config.listen.to_string();
    if config.store != StoreAddress::Memory && config.listen.ip().is_unspecified() && default_name {
        tracing::warn!(
            node = %config.node_id,
            "nodes that share a store need names of their own: set --node-id"
        );
    }
    config
        .configure_regions(&*store)
        .await
        .map_err(|error| Failure::broken(&error))?;
    let times = config.leadership;
    let node = Node::start(NodeOptions {
        node: config.node_id.clone(),
        store: store.clone(),
        decider: Arc::new(StraightLineDecider),
        times: LeaseTimes {
            lease: times.leader_lease,
            renew_deadline: times.renew_deadline,
            retry: times.retry,
            margin: times.margin,
        },
        recorder: recorder.clone(),
        demand_models,
    });
    let node = node.map_err(|error| Failure::broken(&error))?;
    let app = AppState::new(AppParts {
        store,
        runtime: node.clone(),
        config: config.clone(),
        tokens,
        telemetry,
    });
    let server = match Server::bind(app).await {
        Ok(server) => server,
        Err(error) => {
            node.finish(Duration::ZERO).await;
            if let Some(recorder) = recorder {
                recorder.close();
            }
            return Err(Failure::input(&error));
        }
    };
    announce(server.local_addr(), config.tls.is_some());
    server
        .run(asked_to_stop(), async move { node.finish(FINISH).await })
        .await;
    if let Some(recorder) = recorder {
        recorder.close();
    }
    Ok(())
}

/// Tells people and scripts where the service is; the log may be off.
fn announce(address: SocketAddr, tls: bool) {
    let scheme = if tls { "https" } else { "http" };
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("kheya: listening on {scheme}://{address}\n"),
    );
}

fn record(config: &ServeConfig, recording: &Recording) -> Result<Recorder, Failure> {
    let mut options = RecordOptions::new(recording.dir.clone(), config.node_id.clone());
    options.max_bytes = Some(recording.max_bytes);
    options.on_trouble = Some(Arc::new(|trouble| match trouble {
        RecordTrouble::Disk { path, error } => {
            tracing::error!(path = %path.display(), error = &**error, "not recorded");
        }
        RecordTrouble::Encode { error } => tracing::error!(error = &**error, "not recorded"),
    }));
    Recorder::open(options)
        .map_err(|error| Failure::Input(format!("--record {}: {error}", recording.dir.display())))
}

async fn open_store(
    config: &ServeConfig,
    recorder: Option<&Recorder>,
) -> Result<Arc<dyn Store>, Failure> {
    match &config.store {
        StoreAddress::Memory => {
            let store = MemoryStore::new(config.store_options()).map_err(|e| Failure::input(&e))?;
            Ok(recorded(store, recorder))
        }
        StoreAddress::Redis(address) => {
            let options = LinkOptions {
                deadline: config.store_deadline,
                ..LinkOptions::default()
            };
            let opened = open_redis(address, config, options).await;
            let (store, report) =
                opened.map_err(|error| Failure::Input(format!("store: {error}")))?;
            tracing::info!(%address, versions = ?report.versions, "store opened");
            for warning in &report.warnings {
                tracing::warn!(%address, "{warning}");
            }
            Ok(recorded(store, recorder))
        }
    }
}

/// Opens the store. One that cannot be reached is waited for: nodes and servers that are started
/// together come up in any order.
async fn open_redis(
    address: &RedisAddress,
    config: &ServeConfig,
    options: LinkOptions,
) -> Result<(RedisStore, ServerReport), OpenError> {
    let give_up = Instant::now() + STORE_PATIENCE;
    loop {
        match RedisStore::open(address, config.store_options(), options).await {
            Err(OpenError::Link(error @ LinkError::Unreachable { .. }))
                if Instant::now() < give_up =>
            {
                tracing::warn!(%error, "the store cannot be reached yet");
                tokio::time::sleep(STORE_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

fn recorded(store: impl Store + 'static, recorder: Option<&Recorder>) -> Arc<dyn Store> {
    match recorder {
        Some(recorder) => Arc::new(RecordingStore::new(store, recorder.clone())),
        None => Arc::new(store),
    }
}

/// Ends with SIGINT or SIGTERM.
async fn asked_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        Err(_) => {
            let _ = interrupted.await;
        }
    }
}
