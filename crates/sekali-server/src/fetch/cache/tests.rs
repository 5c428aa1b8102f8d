//! What is kept, for how long, and how often the server is really asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use super::*;
use crate::fetch::{Fetching, Rule};

const START: i64 = 1_700_000_000_000;
const SECOND: i64 = 1000;
const HOUR: i64 = 3600 * SECOND;

/// Answers with the number of the request, or with a failure, once it may.
struct Fake {
    asked: AtomicUsize,
    fails: Mutex<Option<FetchError>>,
    gate: Semaphore,
}

impl Fake {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn fail(&self, error: impl Into<Option<FetchError>>) {
        *self.fails.lock().unwrap() = error.into();
    }
}

impl Fetch for Fake {
    fn fetch(&self, _request: Request) -> Fetching<'_> {
        Box::pin(async {
            let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            let _open = self.gate.acquire().await.unwrap();
            let failure = self.fails.lock().unwrap().clone();
            failure.map_or_else(|| Ok(Bytes::from(number.to_string())), Err)
        })
    }
}

fn cache() -> (Arc<Fake>, KeyCache) {
    let fake = Arc::new(Fake {
        asked: AtomicUsize::new(0),
        fails: Mutex::default(),
        gate: Semaphore::new(100),
    });
    (fake.clone(), KeyCache::new(fake, Times::default()))
}

fn request(path: &str) -> Request {
    let rule = Rule::hosts(["keys.example.com"]).unwrap();
    Request::get(format!("https://keys.example.com/{path}"), Arc::new(rule))
}

/// Says what was answered.
fn said(answer: Result<Bytes, FetchError>) -> String {
    answer.map_or_else(
        |error| error.code().to_owned(),
        |bytes| String::from_utf8(bytes.to_vec()).unwrap(),
    )
}

#[tokio::test]
async fn a_document_is_kept_for_an_hour() {
    let (fake, cache) = cache();
    let key = request("a");
    assert_eq!(cache.cached(&key, START), None);
    assert_eq!(said(cache.get(&key, START, || true).await), "1");
    assert_eq!(said(cache.get(&key, START + HOUR - 1, || true).await), "1");
    assert_eq!(cache.cached(&key, START + HOUR - 1).unwrap(), "1");
    assert_eq!(cache.cached(&key, START + HOUR), None);
    assert_eq!(said(cache.get(&key, START + HOUR, || true).await), "2");
    assert_eq!(fake.asked(), 2);
    // A clock that is set back makes nothing last longer.
    assert_eq!(cache.cached(&key, START - HOUR), None);
}

#[tokio::test]
async fn what_differs_in_any_part_is_another_document() {
    let (fake, cache) = cache();
    let rule = request("").rule;
    let post = |body: &'static str| {
        let url = "https://keys.example.com/a";
        Request::post(url, Bytes::from_static(body.as_bytes()), rule.clone())
    };
    let other_rule = Request {
        rule: Arc::new(Rule::hosts(["*.example.com"]).unwrap()),
        ..request("a")
    };
    for key in [request("a"), request("b"), post("1"), post("2"), other_rule] {
        cache.get(&key, START, || true).await.unwrap();
    }
    assert_eq!(fake.asked(), 5);
    assert_eq!(said(cache.get(&request("a"), START, || true).await), "1");
}

#[tokio::test]
async fn a_failure_is_remembered_for_ten_seconds() {
    let (fake, cache) = cache();
    let key = request("a");
    fake.fail(FetchError::Status(500));
    assert_eq!(said(cache.get(&key, START, || true).await), "status");
    fake.fail(None);
    assert_eq!(
        said(cache.get(&key, START + 10 * SECOND - 1, || true).await),
        "status"
    );
    assert_eq!(
        said(cache.refresh(&key, START + SECOND, || true).await),
        "status"
    );
    assert_eq!(cache.cached(&key, START), None);
    assert_eq!(fake.asked(), 1);
    assert_eq!(
        said(cache.get(&key, START + 10 * SECOND, || true).await),
        "2"
    );
    assert_eq!(said(cache.get(&key, START, || true).await), "2");
}

#[tokio::test]
async fn what_was_never_asked_is_not_remembered() {
    let (fake, cache) = cache();
    fake.fail(FetchError::HostNotAllowed);
    assert_eq!(
        said(cache.get(&request("a"), START, || true).await),
        "host_not_allowed"
    );
    fake.fail(None);
    assert_eq!(said(cache.get(&request("a"), START, || true).await), "2");
}

#[tokio::test]
async fn a_document_is_fetched_anew_once_a_minute_at_most() {
    let (fake, cache) = cache();
    let key = request("a");
    assert_eq!(said(cache.refresh(&key, START, || true).await), "1");
    assert_eq!(
        said(cache.refresh(&key, START + 59 * SECOND, || true).await),
        "1"
    );
    assert_eq!(
        said(cache.refresh(&key, START + 60 * SECOND, || true).await),
        "2"
    );
    assert_eq!(
        said(cache.get(&key, START + 61 * SECOND, || true).await),
        "2"
    );
    assert_eq!(
        said(cache.refresh(&key, START + 61 * SECOND, || true).await),
        "2"
    );
    assert_eq!(fake.asked(), 2);
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_the_document() {
    let (fake, cache) = cache();
    let (key, later) = (request("a"), START + 120 * SECOND);
    cache.get(&key, START, || true).await.unwrap();
    fake.fail(FetchError::Timeout);
    assert_eq!(said(cache.refresh(&key, later, || true).await), "timeout");
    fake.fail(None);
    assert_eq!(said(cache.get(&key, later, || true).await), "1");
    // Neither was a new one fetched, nor may it be tried again yet.
    assert_eq!(
        said(cache.refresh(&key, later + 59 * SECOND, || true).await),
        "timeout"
    );
    assert_eq!(fake.asked(), 2);
    assert_eq!(
        said(cache.refresh(&key, later + 60 * SECOND, || true).await),
        "3"
    );
}

#[tokio::test]
async fn an_expired_document_is_not_used_when_fetching_fails() {
    let (fake, cache) = cache();
    let key = request("a");
    cache.get(&key, START, || true).await.unwrap();
    fake.fail(FetchError::Timeout);
    assert_eq!(
        said(cache.get(&key, START + HOUR, || true).await),
        "timeout"
    );
    assert_eq!(
        said(cache.get(&key, START + HOUR + SECOND, || true).await),
        "timeout"
    );
    assert_eq!(fake.asked(), 2);
}

/// Starts many requests for one document while the server does not answer yet.
async fn crowd(fake: &Arc<Fake>, cache: &Arc<KeyCache>) -> Vec<tokio::task::JoinHandle<String>> {
    fake.gate.forget_permits(100);
    let ask = |number: usize| {
        let cache = cache.clone();
        tokio::spawn(async move {
            let key = request("a");
            said(match number % 2 {
                0 => cache.get(&key, START + number as i64, || true).await,
                _ => cache.refresh(&key, START - number as i64, || true).await,
            })
        })
    };
    let crowd = (0..50).map(ask).collect();
    while passengers(cache) < 50 {
        tokio::task::yield_now().await;
    }
    crowd
}

fn passengers(cache: &KeyCache) -> usize {
    let known = cache.lock();
    known
        .flights
        .values()
        .map(|(passengers, _)| passengers)
        .sum()
}

#[tokio::test]
async fn those_who_want_one_document_share_a_fetch() {
    for failure in [None, Some(FetchError::Timeout)] {
        let (fake, cache) = cache();
        let cache = Arc::new(cache);
        fake.fail(failure.clone());
        let crowd = crowd(&fake, &cache).await;
        fake.gate.add_permits(1);
        for one in crowd {
            let expected = failure.as_ref().map_or("1", FetchError::code);
            assert_eq!(one.await.unwrap(), expected);
        }
        assert_eq!(fake.asked(), 1);
        assert!(cache.lock().flights.is_empty());
    }
}

#[tokio::test]
async fn another_takes_over_where_the_one_who_fetches_gives_up() {
    let (fake, cache) = cache();
    let cache = Arc::new(cache);
    let mut crowd = crowd(&fake, &cache).await;
    while fake.asked() == 0 {
        tokio::task::yield_now().await;
    }
    let first = crowd.remove(0);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    fake.gate.add_permits(1);
    for one in crowd {
        assert_eq!(one.await.unwrap(), "2");
    }
    assert_eq!(fake.asked(), 2);
    assert!(cache.lock().flights.is_empty());
}

#[tokio::test]
async fn who_comes_late_waits_with_the_last_one() {
    let (fake, cache) = cache();
    let cache = Arc::new(cache);
    let mut crowd = crowd(&fake, &cache).await;
    let last = crowd.pop().unwrap();
    for one in crowd {
        one.abort();
        let _ = one.await;
    }
    assert_eq!(passengers(&cache), 1);
    let late = tokio::spawn({
        let cache = cache.clone();
        async move { said(cache.get(&request("a"), START, || true).await) }
    });
    while passengers(&cache) < 2 {
        tokio::task::yield_now().await;
    }
    let asked = fake.asked();
    fake.gate.add_permits(1);
    assert_eq!(last.await.unwrap(), late.await.unwrap());
    assert!(fake.asked() <= asked + 1);
    assert!(cache.lock().flights.is_empty());
}

#[tokio::test]
async fn what_was_not_used_for_longest_makes_room() {
    let (fake, cache) = cache();
    for number in 0..MAX_DOCUMENTS {
        cache
            .get(&request(&number.to_string()), START, || true)
            .await
            .unwrap();
    }
    assert!(cache.cached(&request("0"), START).is_some());
    cache
        .get(&request("one more"), START, || true)
        .await
        .unwrap();
    assert!(cache.cached(&request("0"), START).is_some());
    assert!(cache.cached(&request("1"), START).is_none());
    // Failures have a shelf of their own, so that they push no document out.
    fake.fail(FetchError::Timeout);
    for number in 0..3 * MAX_DOCUMENTS {
        let _ = cache
            .get(&request(&format!("bad-{number}")), START, || true)
            .await;
    }
    assert!(cache.cached(&request("0"), START).is_some());
    assert!(cache.cached(&request("one more"), START).is_some());
    let asked = fake.asked();
    let _ = cache.get(&request("bad-0"), START, || true).await;
    assert_eq!(fake.asked(), asked + 1);
}
