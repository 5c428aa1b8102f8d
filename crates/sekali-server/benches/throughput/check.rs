//! Whether a contender does what it says before it is measured: what is new, repeated, sent twice at once, forged and late.

use sekali::Clock;

use crate::Result;
use crate::contender::{Contender, Who};
use crate::peer::Kind;
use crate::product::Mode;
use crate::request::{Connection, ENTITIES, Event, Ids, Signer};
use crate::servers::{Place, Servers};

/// Events that are sent twice at once.
const TWINS: std::ops::Range<usize> = 10..40;
/// A version of the first entity, and an older one that comes behind it.
const IN_TURN: [usize; 3] = [ENTITIES + 1, 1, 2];

/// Sends a few deliveries to an empty contender and asks its database about them.
pub(crate) async fn check(who: Who, place: &Place, servers: &mut Servers) -> Result<()> {
    let contender = Contender::start(who, place, servers).await?;
    let mut sender = Sender {
        signer: Signer::new()?,
        connection: Connection::open(contender.address()).await?,
        request: Vec::new(),
    };
    let new = match who {
        Who::Peer(kind) if kind.applies() => 200,
        _ => 202,
    };
    for status in [new, 200] {
        for number in IN_TURN {
            let answered = sender.send(number, 0).await?;
            expect(who, &format!("event {number}"), answered, &[status])?;
        }
    }
    let mut twin = Connection::open(contender.address()).await?;
    for number in TWINS {
        sender.write(number, 0);
        let (first, second) = tokio::join!(
            sender.connection.exchange(&sender.request),
            twin.exchange(&sender.request)
        );
        let mut answered = [first?, second?];
        answered.sort_unstable();
        expect(who, "the first of twins", answered[0], &[200, new])?;
        expect(who, "the second of twins", answered[1], &[200, new, 429])?;
    }
    let late = sender.send(50, -600_000).await?;
    expect(who, "a late delivery", late, &[400])?;
    sender.write(51, 0);
    let place_of_forgery = sender.request.len() - 100;
    sender.request[place_of_forgery] ^= 1;
    let forged = sender.connection.exchange(&sender.request).await?;
    expect(who, "a forged delivery", forged, &[401])?;

    let events = IN_TURN.len() + TWINS.len();
    // Refused deliveries are written behind, some time later.
    contender.count(events, None)?;
    if let Some((sql, expected)) = state(who, events) {
        let found = place.sql(sql);
        if found.trim() != expected {
            return Err(format!("{who:?}: {sql}: {found} instead of {expected}").into());
        }
    }
    Ok(())
}

/// Returns a question about what was applied, and its answer.
fn state(who: Who, events: usize) -> Option<(&'static str, String)> {
    let newest = (ENTITIES + 1).to_string();
    match who {
        Who::Product(Mode::Admit) => None,
        Who::Product(Mode::Apply) | Who::Peer(Kind::Php) => Some((
            "select current_source_version from research_documents where entity_id = 'doc_000001'",
            newest,
        )),
        // The older version is an event, and no update.
        Who::Peer(Kind::ExpressApply) => Some((
            "select sum(applied) from counters",
            (events - 1).to_string(),
        )),
        Who::Peer(Kind::ExpressInsert | Kind::FastApiInsert) => Some((
            "select count(*) from events where convert_from(body, 'UTF8')::json ->> 'event_id' = event_id",
            events.to_string(),
        )),
    }
}

fn expect(who: Who, what: &str, answered: u16, right: &[u16]) -> Result<()> {
    match right.contains(&answered) {
        true => Ok(()),
        false => Err(format!("{who:?}: {what} was answered {answered}").into()),
    }
}

struct Sender {
    signer: Signer,
    connection: Connection,
    request: Vec<u8>,
}

impl Sender {
    fn write(&mut self, number: usize, later_ms: i64) {
        let event = Event::new(number, Ids::Rising);
        let now = Clock::System.now_ms() + later_ms;
        self.signer.write(&mut self.request, &event, now);
    }

    async fn send(&mut self, number: usize, later_ms: i64) -> Result<u16> {
        self.write(number, later_ms);
        self.connection.exchange(&self.request).await
    }
}
