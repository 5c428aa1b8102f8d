//! Other methods and other paths.

use crate::support::{Connection, ORDERS, Reply, Server, hook, order};

fn ask(server: &Server, method: &str, path: &str) -> Reply {
    let mut connection = Connection::open(server.address());
    let head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
    connection.write(head.as_bytes());
    let reply = match method {
        "HEAD" => connection.read_head(),
        _ => connection.read(),
    };
    reply.unwrap_or_else(|| panic!("no answer to {method}"))
}

#[test]
fn c10_other_methods_are_told_which_one_there_is() {
    let server = Server::start(ORDERS);
    for path in [
        "/hooks/orders",
        "/hooks/orders/",
        "/hooks/orders?challenge=abc",
    ] {
        for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"] {
            let reply = ask(&server, method, path);
            assert_eq!(reply.status, 405, "{method} {path}");
            assert_eq!(reply.header("allow"), Some("POST"), "{method} {path}");
            assert!(!reply.text().contains("abc"), "the challenge is echoed");
        }
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}

#[test]
fn c10_a_trailing_slash_makes_no_difference() {
    let server = Server::start(ORDERS);
    let reply = hook("slash", order("o-1", 1, "paid"))
        .to("orders/")
        .send(&server);
    assert_eq!(reply.says(), "202 accepted");
    let reply = hook("slash", order("o-1", 1, "paid")).send(&server);
    assert_eq!(reply.says(), "200 duplicate", "it is the same source");
}

#[test]
fn c10_an_unknown_source_is_not_found() {
    let server = Server::start(ORDERS);
    for path in ["nobody", "Orders", "orders%2f", "", "../orders"] {
        let reply = hook("e", order("o-1", 1, "paid")).to(path).send(&server);
        assert_eq!(reply.status, 404, "{path}");
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}

#[test]
fn c10_answers_have_a_length_a_type_and_a_request_id() {
    let server = Server::start(ORDERS);
    let valid = hook("e", order("o-1", 1, "paid"));
    let forged = hook("f", order("o-1", 1, "paid")).signature("v1=00");
    for hook in [valid, forged] {
        let reply = hook.send(&server);
        let length = reply.header("content-length").unwrap();
        assert_eq!(length.parse(), Ok(reply.body.len()));
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert!(reply.header("x-request-id").unwrap().starts_with("req_"));
    }
}
