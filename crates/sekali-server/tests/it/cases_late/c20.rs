//! Events of one second.

use crate::support::{ORDERS, Server, hook};

/// Returns the source of orders as one that knows no versions.
pub(super) fn by_time() -> String {
    ORDERS.replace("version = \"/source_version\"\n", "")
}

fn event(entity_id: &str, status: &str) -> String {
    format!(
        r#"{{"entity_id":"{entity_id}","occurred_at":"2026-01-02T03:04:05Z","status":"{status}"}}"#
    )
}

#[test]
fn c20_in_the_same_second_the_id_decides_and_never_the_arrival() {
    let server = Server::start(&by_time());
    let orders = [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ];
    for (entity, order) in orders.iter().enumerate() {
        let mut greatest = 0;
        for number in order {
            let id = format!("x{entity}-e{number}");
            let body = event(&format!("x{entity}"), &format!("s{number}"));
            assert_eq!(hook(&id, body).send(&server).says(), "202 accepted");
            server.wait_applied();
            let expected = match *number > greatest {
                true => "processed",
                false => "ignored_out_of_order",
            };
            assert_eq!(server.status(&id), expected, "{order:?}");
            greatest = greatest.max(*number);
        }
    }
    let states = server.column("select status from orders order by entity_id", &[]);
    assert_eq!(states, ["s3"; 6]);
    let reasons =
        "select distinct status_reason from webhook_inbox where status_reason is not null";
    assert_eq!(server.column(reasons, &[]), ["lower_event_id"]);
}
