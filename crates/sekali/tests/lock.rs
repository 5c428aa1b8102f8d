//! The lock against a real Redis, as long as it works and when it does not.

#![cfg(feature = "redis-lock")]
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::time::{Duration, Instant};

use sekali::lock::{Acquired, Lock, LockGuard, LockKey, LockOptions};
use sekali_testkit::redis::Redis;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long an answer may take when Redis is away; a machine that has other things to do needs more than the timeout.
const AT_ONCE: Duration = Duration::from_secs(2);

const KEY: LockKey<'_> = LockKey {
    source: "orders",
    scope: "",
    event_id: "e-1",
};

fn other_key(event_id: &str) -> LockKey<'_> {
    LockKey { event_id, ..KEY }
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < end, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn started(options: LockOptions) -> Lock {
    let lock = Lock::start(options).unwrap();
    eventually("Redis is up", async || lock.stats().is_up).await;
    lock
}

async fn on(redis: &Redis) -> Lock {
    started(LockOptions::new(redis.url())).await
}

fn held(acquired: Acquired) -> LockGuard {
    match acquired {
        Acquired::Held(guard) => guard,
        other => panic!("not held: {other:?}"),
    }
}

/// Asks for a lock, which must not take long; tells whether Redis could not say.
async fn is_away(lock: &Lock, event_id: &str) -> bool {
    let asked = Instant::now();
    let acquired = lock.acquire(other_key(event_id)).await;
    assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    matches!(acquired, Acquired::Unavailable)
}

/// Returns the key of the one lock that is held, and its token.
fn stored(redis: &Redis) -> (String, String) {
    let keys = redis.run(&["keys", "sekali:lock:????????*"]);
    let token = redis.run(&["get", &keys]);
    (keys, token)
}

#[tokio::test]
async fn one_of_two_nodes_holds_a_lock_and_then_the_other() {
    let redis = Redis::start(&[]);
    let (one, other) = (on(&redis).await, on(&redis).await);
    let guard = held(one.acquire(KEY).await);
    assert!(matches!(other.acquire(KEY).await, Acquired::Busy));
    held(other.acquire(other_key("e-2")).await).release().await;
    let (key, _) = stored(&redis);
    let left: u64 = redis.run(&["pttl", &key]).parse().unwrap();
    assert!((1..=15_000).contains(&left), "{left}");
    guard.release().await;
    held(other.acquire(KEY).await);
    assert_eq!((one.stats().held, other.stats().busy), (1, 1));
}

#[tokio::test]
async fn a_guard_that_is_dropped_lets_go() {
    let redis = Redis::start(&[]);
    let lock = on(&redis).await;
    drop(held(lock.acquire(KEY).await));
    eventually("the key is gone", async || stored(&redis).0.is_empty()).await;
}

#[tokio::test]
async fn of_many_at_once_one_holds_it() {
    let redis = Redis::start(&[]);
    let lock = on(&redis).await;
    for round in 0..20 {
        let id = format!("e-{round}");
        let asking = (0..20).map(|_| {
            let (lock, id) = (lock.clone(), id.clone());
            tokio::spawn(async move { lock.acquire(other_key(&id)).await })
        });
        let mut guards = Vec::new();
        for asked in asking.collect::<Vec<_>>() {
            if let Acquired::Held(guard) = asked.await.unwrap() {
                guards.push(guard);
            }
        }
        assert_eq!(guards.len(), 1);
    }
}

#[tokio::test]
async fn a_holder_that_comes_late_does_not_take_the_next_ones_lock() {
    let redis = Redis::start(&[]);
    let (one, other) = (on(&redis).await, on(&redis).await);
    let late = held(one.acquire(KEY).await);
    // Its time is over, and somebody else came.
    redis.run(&["del", &stored(&redis).0]);
    let next = held(other.acquire(KEY).await);
    let (_, token) = stored(&redis);
    late.release().await;
    assert_eq!(stored(&redis).1, token);
    assert!(matches!(one.acquire(KEY).await, Acquired::Busy));
    drop(next);
}

#[tokio::test]
async fn a_lock_lasts_as_long_as_its_guard() {
    let redis = Redis::start(&[]);
    let ttl = Duration::from_secs(10);
    let lock = started(LockOptions {
        ttl,
        ..LockOptions::new(redis.url())
    })
    .await;
    let guard = held(lock.acquire(KEY).await);
    tokio::time::sleep(ttl + Duration::from_secs(2)).await;
    assert!(!guard.is_lost());
    assert!(matches!(lock.acquire(KEY).await, Acquired::Busy));
}

#[tokio::test]
async fn a_lock_that_is_renewed_no_more_ends() {
    let redis = Redis::start(&[]);
    let lock = started(LockOptions {
        ttl: Duration::from_secs(10),
        max_run: Duration::from_secs(1),
        ..LockOptions::new(redis.url())
    })
    .await;
    let guard = held(lock.acquire(KEY).await);
    eventually("the guard says so", async || guard.is_lost()).await;
    assert_eq!(lock.stats().lost, 1);
    eventually("it can be had again", async || {
        matches!(lock.acquire(KEY).await, Acquired::Held(_))
    })
    .await;
}

#[tokio::test]
async fn a_flushed_redis_forgets_locks_and_guards_say_so() {
    let redis = Redis::start(&[]);
    let lock = started(LockOptions {
        ttl: Duration::from_secs(10),
        ..LockOptions::new(redis.url())
    })
    .await;
    let guard = held(lock.acquire(KEY).await);
    redis.run(&["flushall"]);
    let next = held(lock.acquire(KEY).await);
    eventually("the guard says so", async || guard.is_lost()).await;
    assert!(!next.is_lost());
}

#[tokio::test]
async fn a_redis_that_is_away_is_no_reason_to_wait_and_is_used_again_when_it_is_back() {
    let redis = Redis::start(&[]);
    let lock = on(&redis).await;
    let (folder, port) = redis.kill();
    eventually("it is noticed", async || is_away(&lock, "a").await).await;
    let asked = Instant::now();
    for number in 0..1000 {
        assert!(is_away(&lock, &format!("b-{number}")).await);
    }
    assert!(
        asked.elapsed() < AT_ONCE,
        "a thousand: {:?}",
        asked.elapsed()
    );
    assert!(!lock.stats().is_up);
    let _redis = Redis::resume(folder, port, &[]);
    eventually("it is used again", async || !is_away(&lock, "c").await).await;
}

#[tokio::test]
async fn a_redis_that_was_never_there_is_no_error() {
    let url = format!("redis://127.0.0.1:{}", sekali_testkit::free_port());
    let lock = Lock::start(LockOptions::new(url)).unwrap();
    assert!(is_away(&lock, "a").await);
}

#[tokio::test]
async fn a_redis_that_does_not_answer_counts_as_away() {
    let redis = Redis::start(&[]);
    let lock = on(&redis).await;
    redis.process().signal("STOP");
    eventually("it is noticed", async || is_away(&lock, "a").await).await;
    assert!(!lock.stats().is_up);
    redis.process().signal("CONT");
    eventually("it is used again", async || !is_away(&lock, "b").await).await;
}

#[tokio::test]
async fn a_redis_that_refuses_to_write_counts_as_away() {
    let redis = Redis::start(&[]);
    let lock = on(&redis).await;
    for (refuse, allow) in [
        (
            // Full.
            ["config", "set", "maxmemory", "1"],
            ["config", "set", "maxmemory", "0"],
        ),
        (
            // A replica of nobody, which only reads.
            ["replicaof", "127.0.0.1", "1", ""],
            ["replicaof", "no", "one", ""],
        ),
        (
            // Without the right to write.
            ["acl", "setuser", "default", "-set"],
            ["acl", "setuser", "default", "+set"],
        ),
    ] {
        let run = |command: [&str; 4]| {
            let words = command.iter().filter(|word| !word.is_empty());
            redis.run(&words.copied().collect::<Vec<_>>());
        };
        run(refuse);
        eventually("it is noticed", async || is_away(&lock, "a").await).await;
        run(allow);
        eventually("it is used again", async || !is_away(&lock, "b").await).await;
    }
}
