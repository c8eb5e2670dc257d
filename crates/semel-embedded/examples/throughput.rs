//! Throw-away.
#![allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "throw-away"
)]
use bytes::Bytes;
use semel::record::*;
use semel::*;
use semel_embedded::*;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::*;
use std::time::*;

fn fdatasync(dir: &std::path::Path, bytes: usize, secs: f64) -> f64 {
    let mut f = std::fs::File::create(dir.join("raw")).unwrap();
    let b = vec![7u8; bytes];
    let t = Instant::now();
    let mut n = 0u64;
    while t.elapsed().as_secs_f64() < secs {
        f.write_all(&b).unwrap();
        f.sync_data().unwrap();
        n += 1;
    }
    n as f64 / t.elapsed().as_secs_f64()
}
fn fjall_rate(dir: &std::path::Path, bytes: usize, secs: f64) -> f64 {
    let db = fjall::Database::builder(dir.join(format!("fj{bytes}")))
        .open()
        .unwrap();
    let ks = db
        .keyspace("x", fjall::KeyspaceCreateOptions::default)
        .unwrap();
    let t = Instant::now();
    let mut n = 0u64;
    while t.elapsed().as_secs_f64() < secs {
        let mut b = db.batch().durability(Some(fjall::PersistMode::SyncData));
        for _ in 0..100 {
            n += 1;
            let mut k = [0u8; 33];
            k[1..9].copy_from_slice(&n.wrapping_mul(0x9E3779B97F4A7C15).to_be_bytes());
            b.insert(&ks, k, vec![(n % 251) as u8; bytes]);
        }
        b.commit().unwrap();
    }
    n as f64 / t.elapsed().as_secs_f64()
}
fn key(n: u64) -> Key {
    let mut k = [0u8; 32];
    k[..8].copy_from_slice(&n.wrapping_mul(0x9E3779B97F4A7C15).to_be_bytes());
    k[24..].copy_from_slice(&n.to_be_bytes());
    Key::from_bytes(k)
}
async fn pairs(
    store: &Arc<EmbeddedStore>,
    next: &Arc<AtomicU64>,
    clients: usize,
    bytes: usize,
    until: Option<u64>,
    secs: f64,
    in_doubt: InDoubt,
) -> (f64, f64, f64, f64) {
    let t = Instant::now();
    let mut set = tokio::task::JoinSet::new();
    let from = next.load(Ordering::Relaxed);
    for _ in 0..clients {
        let (store, next) = (Arc::clone(store), Arc::clone(next));
        set.spawn(async move {
            let result = Bytes::from(vec![9u8; bytes]);
            let (mut cl, mut co) = (Vec::new(), Vec::new());
            loop {
                if until.is_none() && t.elapsed().as_secs_f64() > secs {
                    break;
                }
                let n = next.fetch_add(1, Ordering::Relaxed);
                if until.is_some_and(|u| n >= u) {
                    break;
                }
                let claim = Claim {
                    key: key(n),
                    fingerprint: Fingerprint::off(),
                    owner: Owner::random(),
                    lease: Duration::from_secs(30),
                    retention: Duration::from_secs(86400),
                    in_doubt,
                    max_attempts: None,
                };
                let a = Instant::now();
                let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
                    panic!()
                };
                let b = Instant::now();
                let Held::Applied(_) = store
                    .complete(&lease, &result, Duration::from_secs(86400))
                    .await
                    .unwrap()
                else {
                    panic!()
                };
                cl.push((b - a).as_micros() as u64);
                co.push(b.elapsed().as_micros() as u64);
            }
            (cl, co)
        });
    }
    let (mut cl, mut co) = (Vec::new(), Vec::new());
    for (a, b) in set.join_all().await {
        cl.extend(a);
        co.extend(b);
    }
    let rate = (cl.len()) as f64 / t.elapsed().as_secs_f64();
    cl.sort();
    co.sort();
    let _ = from;
    let p =
        |v: &Vec<u64>, q: f64| v.get((v.len() as f64 * q) as usize).copied().unwrap_or(0) as f64;
    (rate, p(&cl, 0.5), p(&co, 0.5), p(&co, 0.99))
}
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect();
    (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0
}
fn main() {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let what: Vec<String> = std::env::args().collect();
    let big = what.iter().any(|w| w == "big");
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if what.iter().any(|w| w == "ratio") {
        let rounds: usize = what[2].parse().unwrap();
        let store = Arc::new(
            EmbeddedStore::open(dir.path().join("s"), EmbeddedSettings::default()).unwrap(),
        );
        let next = Arc::new(AtomicU64::new(0));
        let (mut a, mut b, mut c) = (vec![], vec![], vec![]);
        for i in 0..rounds {
            let f = fdatasync(dir.path(), 128, 1.0);
            let j = fjall_rate(&dir.path().join(format!("r{i}")), 250, 1.5);
            let p = rt
                .block_on(pairs(&store, &next, 64, 100, None, 2.0, InDoubt::Retry))
                .0;
            println!(
                "fdatasync {f:.0}/s, fjall batch-of-100 {j:.0} rows/s, 64 clients {p:.0} pairs/s: {:.1} x fdatasync, {:.2} x fjall rows",
                p / f,
                p / j
            );
            a.push(f);
            b.push(j);
            c.push(p);
        }
        let med = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v[v.len() / 2]
        };
        let (f, j, p) = (med(&mut a), med(&mut b), med(&mut c));
        println!(
            "median: fdatasync {f:.0}/s, fjall {j:.0} rows/s, pairs {p:.0}/s: {:.1} x, {:.2} x",
            p / f,
            p / j
        );
        return;
    }
    if what.iter().any(|w| w == "pairs") {
        let clients: usize = what[2].parse().unwrap();
        rt.block_on(async {
            let store = Arc::new(EmbeddedStore::open(dir.path().join("s"), EmbeddedSettings::default()).unwrap());
            let next = Arc::new(AtomicU64::new(0));
            let mut g0 = 0.0;
            for _ in 0..3 {
            let c = cpu();
            let n0 = next.load(Ordering::Relaxed);
            let r = pairs(&store, &next, clients, 100, None, 3.0, InDoubt::Retry).await;
            let n = (next.load(Ordering::Relaxed) - n0) as f64;
            let fr = std::fs::read(dir.path().join("s/data/frontier")).unwrap();
            let g1 = u64::from_be_bytes(fr[8..16].try_into().unwrap()) as f64;
            println!("ops per group {:.1}", 2.0 * n / (g1 - g0)); g0 = g1;
            println!("{clients:>4} clients, 100 B, retry: {:.0} pairs/s, claim p50 {} us, complete p50 {} p99 {} us; cpu {:.1} us/pair", r.0, r.1, r.2, r.3, (cpu() - c) * 1e6 / n);
            }
        });
        return;
    }
    for _ in 0..2 {
        println!(
            "fdatasync per 128 B write: {:.0}/s",
            fdatasync(dir.path(), 128, 2.0)
        );
        println!(
            "fjall batch of 100, 150 B rows: {:.0} rows/s",
            fjall_rate(dir.path(), 150, 3.0)
        );
        println!(
            "fjall batch of 100, 1 KiB rows: {:.0} rows/s",
            fjall_rate(dir.path(), 1024, 3.0)
        );
    }
    rt.block_on(async {
        let store = Arc::new(EmbeddedStore::open(dir.path().join("s"), EmbeddedSettings::default()).unwrap());
        let next = Arc::new(AtomicU64::new(0));
        for clients in [1, 8, 64, 256] {
            let r = pairs(&store, &next, clients, 100, None, 3.0, InDoubt::Retry).await;
            println!("{clients:>4} clients, 100 B, retry: {:.0} pairs/s, claim p50 {} us, complete p50 {} p99 {} us", r.0, r.1, r.2, r.3);
        }
        let r = pairs(&store, &next, 64, 100, None, 3.0, InDoubt::Park).await;
        println!("  64 clients, 100 B, park:  {:.0} pairs/s, claim p50 {} us, complete p50 {} p99 {} us", r.0, r.1, r.2, r.3);
        let r = pairs(&store, &next, 64, 1024, None, 3.0, InDoubt::Retry).await;
        println!("  64 clients, 1 KiB, retry: {:.0} pairs/s, claim p50 {} us, complete p50 {} p99 {} us", r.0, r.1, r.2, r.3);
        if big {
            let store = Arc::new(EmbeddedStore::open(dir.path().join("t"), EmbeddedSettings::default()).unwrap());
            let next = Arc::new(AtomicU64::new(0));
            pairs(&store, &next, 64, 100, Some(10_000), 0.0, InDoubt::Retry).await;
            for _ in 0..2 {
                next.store(1 << 40, Ordering::Relaxed);
                let store2 = Arc::clone(&store);
                let a = pairs(&store2, &Arc::new(AtomicU64::new((1 << 40) + rand::random::<u32>() as u64 * 100_000)), 64, 100, None, 3.0, InDoubt::Retry).await;
                println!("small store: {:.0} pairs/s", a.0);
            }
            let t = Instant::now();
            let fill = Arc::new(AtomicU64::new(0));
            fill.store(10_000, Ordering::Relaxed);
            pairs(&store, &fill, 256, 100, Some(1_000_000), 0.0, InDoubt::Retry).await;
            println!("filled to 1M in {:?}", t.elapsed());
            for _ in 0..3 {
                let a = pairs(&store, &Arc::new(AtomicU64::new((1 << 50) + rand::random::<u32>() as u64 * 100_000)), 64, 100, None, 3.0, InDoubt::Retry).await;
                println!("with 1M keys: {:.0} pairs/s", a.0);
            }
            drop(store);
            let t = Instant::now();
            let s = EmbeddedStore::open(dir.path().join("t"), EmbeddedSettings::default()).unwrap();
            println!("reopen with 1M+: {:?}", t.elapsed());
            drop(s);
        }
    });
}
