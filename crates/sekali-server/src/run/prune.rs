//! Removing what has outlived its retention, while serving and by a command.

use std::time::Duration;

use sekali::store::{Cursor, Prune, Pruned};
use sekali::{Store, chain};
use tokio::time::Instant;

use super::is_forbidden;
use crate::config::Config;

/// How often old rows are removed.
const EVERY: Duration = Duration::from_secs(600);
/// How long after the start they are removed first: a start has senders waiting for it.
pub(super) const FIRST: Duration = Duration::from_secs(60);
/// How many rows of a table go in one transaction, so that deliveries hardly wait.
const LEN: i64 = 500;

/// Removes old rows in small steps beside everything else, from `first` on; ends where the role may not do that.
pub(super) async fn prune(store: Store, config: Config, first: Duration) {
    let mut ticks = tokio::time::interval_at(Instant::now() + first, EVERY);
    loop {
        ticks.tick().await;
        match prune_all(&store, &config).await {
            Ok(pruned) if pruned.total() > 0 => {
                tracing::info!(rows = pruned.total(), "old rows were removed")
            }
            Ok(_) => {}
            Err(error) if is_forbidden(&error) => {
                tracing::warn!(
                    error = chain(&error),
                    "this role may not remove old rows, and tries no more; run `sekali prune` now and then with one that may"
                );
                return;
            }
            Err(error) => tracing::warn!(error = chain(&error), "old rows could not be removed"),
        }
    }
}

/// Removes everything that has outlived its retention.
pub(crate) async fn prune_all(store: &Store, config: &Config) -> sekali::Result<Pruned> {
    let (mut all, mut from) = (Pruned::default(), Cursor::default());
    while !from.is_done() {
        let step = Prune {
            retention: config.retention(),
            batch_len: LEN,
            from,
        };
        let (pruned, next) = store.write(step).await?;
        all.add(pruned);
        from = next;
        tokio::task::yield_now().await;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use sekali::{Database, StoreOptions};
    use sekali_testkit::{mariadb, postgres};

    use super::*;

    async fn open(url: &str) -> Store {
        let store = Store::open(StoreOptions {
            allow_unsafe_durability: true,
            ..StoreOptions::serving(Database::parse(url).unwrap())
        });
        store.await.unwrap()
    }

    #[tokio::test]
    async fn a_role_that_may_not_remove_rows_tries_once_and_no_more() {
        let (postgres, mariadb) = (postgres::server().database(), mariadb::server().database());
        for url in [&postgres, &mariadb] {
            open(url).await;
        }
        postgres::query(
            &postgres,
            "create role looker login; grant select on all tables in schema public to looker",
        );
        let grants =
            "create user looker identified by 'fake-password'; grant select on * to looker";
        mariadb::query(&mariadb, grants);
        for url in [
            postgres.replace("postgres@", "looker@"),
            mariadb.replace("sekali:", "looker:"),
        ] {
            let config = Config::parse("", "empty").unwrap();
            let pruning = prune(open(&url).await, config, Duration::ZERO);
            let ended = tokio::time::timeout(Duration::from_secs(20), pruning).await;
            assert!(ended.is_ok(), "it goes on trying: {url}");
        }
    }
}
