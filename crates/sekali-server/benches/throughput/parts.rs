//! What is compared with what: the parts of the comparison, each with its lines and its goals.

use crate::contender::Who;
use crate::peer::Kind;
use crate::product::Mode;
use crate::request::Ids;
use crate::servers::Store;

/// One comparison, whose lines run in turn.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) lines: Vec<Line>,
    pub(crate) ratios: Vec<Ratio>,
}

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) who: Who,
    pub(crate) store: Store,
    pub(crate) ids: Ids,
    pub(crate) duplicates: usize,
    /// Whether the inbox is full of other events already.
    pub(crate) is_full: bool,
}

/// One line's rate as a multiple of another's.
pub(crate) struct Ratio {
    pub(crate) of: usize,
    pub(crate) over: usize,
    /// What it has to be at least; none where it is told for comparison.
    pub(crate) goal: Option<f64>,
}

impl Line {
    const fn new(name: &'static str, who: Who, store: Store) -> Self {
        Self {
            name,
            who,
            store,
            ids: Ids::Rising,
            duplicates: 0,
            is_full: false,
        }
    }

    fn random(self) -> Self {
        Self {
            ids: Ids::Random,
            ..self
        }
    }

    fn with_duplicates(self) -> Self {
        Self {
            duplicates: 20,
            ..self
        }
    }

    fn full(self) -> Self {
        Self {
            is_full: true,
            ..self
        }
    }
}

fn ratios(list: &[(usize, usize, Option<f64>)]) -> Vec<Ratio> {
    let ratio = |(of, over, goal): &(usize, usize, Option<f64>)| Ratio {
        of: *of,
        over: *over,
        goal: *goal,
    };
    list.iter().map(ratio).collect()
}

const ADMIT: Who = Who::Product(Mode::Admit);
const APPLY: Who = Who::Product(Mode::Apply);

/// Returns all parts, in the order in which they run.
pub(crate) fn all() -> Vec<Part> {
    vec![
        admit_postgres(),
        apply_postgres(),
        mariadb(),
        slow_fsync(),
        keys(),
    ]
}

fn admit_postgres() -> Part {
    let store = Store::Postgres;
    Part {
        name: "admit-postgres",
        title: "Admission into PostgreSQL",
        lines: vec![
            Line::new("Express, insert", Who::Peer(Kind::ExpressInsert), store),
            Line::new("FastAPI, insert", Who::Peer(Kind::FastApiInsert), store),
            Line::new("admitted, rising ids", ADMIT, store),
            Line::new("admitted, random ids", ADMIT, store).random(),
            Line::new("admitted, rising ids, 20 % duplicates", ADMIT, store).with_duplicates(),
            Line::new("admitted, random ids, 20 % duplicates", ADMIT, store)
                .random()
                .with_duplicates(),
        ],
        ratios: ratios(&[
            (2, 0, Some(7.0)),
            (3, 0, Some(7.0)),
            (2, 1, None),
            (4, 2, Some(1.0)),
            (5, 3, Some(1.0)),
        ]),
    }
}

fn apply_postgres() -> Part {
    let store = Store::Postgres;
    let express = Who::Peer(Kind::ExpressApply);
    Part {
        name: "apply-postgres",
        title: "Admitted and applied on PostgreSQL",
        lines: vec![
            Line::new("Express + Redis, applied", express, store),
            Line::new("applied, rising ids", APPLY, store),
            Line::new("applied, random ids", APPLY, store).random(),
            Line::new("applied, rising ids, 20 % duplicates", APPLY, store).with_duplicates(),
            Line::new("applied, random ids, 20 % duplicates", APPLY, store)
                .random()
                .with_duplicates(),
        ],
        ratios: ratios(&[
            (1, 0, Some(5.0)),
            (2, 0, Some(5.0)),
            (3, 1, Some(1.0)),
            (4, 2, Some(1.0)),
        ]),
    }
}

fn mariadb() -> Part {
    let store = Store::MariaDb;
    Part {
        name: "mariadb",
        title: "MariaDB",
        lines: vec![
            Line::new("PHP, applied", Who::Peer(Kind::Php), store),
            Line::new("admitted, rising ids", ADMIT, store),
            Line::new("admitted, random ids", ADMIT, store).random(),
            Line::new("admitted, rising ids, 20 % duplicates", ADMIT, store).with_duplicates(),
            Line::new("applied, rising ids", APPLY, store),
            Line::new("applied, random ids", APPLY, store).random(),
        ],
        ratios: ratios(&[
            (1, 0, Some(8.0)),
            (2, 0, Some(8.0)),
            (3, 1, Some(1.0)),
            (4, 0, Some(8.0)),
            (5, 0, Some(8.0)),
        ]),
    }
}

fn slow_fsync() -> Part {
    let store = Store::SlowPostgres;
    Part {
        name: "slow-fsync",
        title: "PostgreSQL on a slow disk: 2 ms more for every fsync",
        lines: vec![
            Line::new("Express, insert", Who::Peer(Kind::ExpressInsert), store),
            Line::new("admitted, rising ids", ADMIT, store),
            Line::new("admitted, random ids", ADMIT, store).random(),
            Line::new(
                "Express + Redis, applied",
                Who::Peer(Kind::ExpressApply),
                store,
            ),
            Line::new("applied, rising ids", APPLY, store),
        ],
        ratios: ratios(&[(1, 0, Some(3.5)), (2, 0, Some(3.5)), (4, 3, None)]),
    }
}

fn keys() -> Part {
    let line = |name, who| Line::new(name, who, Store::Postgres).with_duplicates();
    Part {
        name: "keys",
        title: "Ten million keys in PostgreSQL's inbox, 20 % duplicates",
        lines: vec![
            line("admitted, rising ids, empty inbox", ADMIT),
            line("admitted, rising ids, full inbox", ADMIT).full(),
            line("applied, rising ids, empty inbox", APPLY),
            line("applied, rising ids, full inbox", APPLY).full(),
            line("admitted, random ids, empty inbox", ADMIT).random(),
            line("admitted, random ids, full inbox", ADMIT)
                .random()
                .full(),
        ],
        ratios: ratios(&[(1, 0, Some(0.8)), (3, 2, Some(0.8)), (5, 4, None)]),
    }
}
