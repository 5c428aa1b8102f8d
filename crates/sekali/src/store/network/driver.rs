//! What the two drivers have to answer; everything else about them is the same.

use std::time::Duration;

use sqlx::{Connection, Pool};

use crate::error::Result;
use crate::store::Schema;
use crate::store::conn::{Conn, Wire};

/// What a connection is told before it is used.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Session {
    /// How long a statement waits for a lock.
    pub(in crate::store) lock_wait: Duration,
    /// How long a transaction may idle before the database ends it: a node that was stopped in one keeps its locks.
    pub(in crate::store) idle: Duration,
    /// Whether a server is used that may lose what it committed.
    pub(in crate::store) allow_unsafe_durability: bool,
}

/// A database of the network.
pub(in crate::store) trait Driver: sqlx::Database {
    /// What the connections of a store share.
    type Parts: Default + Send + Sync + 'static;

    /// Reads the URL.
    fn read_url(url: &str) -> sqlx::Result<<Self::Connection as Connection>::Options>;

    /// Prepares a connection, and says where its server may lose what it committed.
    fn begin_session(
        db: &mut Self::Connection,
        session: Session,
    ) -> impl Future<Output = sqlx::Result<Option<String>>> + Send;

    /// Has the database end a session whose statement was given up, over another connection; 0 is none.
    fn end_session(pool: Pool<Self>, backend: i64);

    /// Makes a connection of the store out of the driver's.
    fn conn<'c>(db: &'c mut Self::Connection, wire: Wire<'c>, parts: &'c Self::Parts) -> Conn<'c>;

    /// Brings the schema up to date, or checks it.
    fn migrate(
        db: &mut Self::Connection,
        schema: Schema,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Tells whether a server that said this at connecting may take connections later.
    fn may_be_starting(code: &str, number: Option<u16>) -> bool;
}

/// Rounds up to whole seconds, of which there is one at least.
pub(in crate::store) fn whole_seconds(span: Duration) -> u64 {
    span.as_millis()
        .div_ceil(1000)
        .max(1)
        .try_into()
        .unwrap_or(u64::MAX)
}
