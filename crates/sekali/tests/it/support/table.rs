//! The sources of the tests, the table that they keep, and the bodies that their senders send.

use sekali::{Source, SourceConfig};

/// The user's table, and a log of every write to it.
pub(crate) const DOCS: &str = "
    create table docs (entity text primary key, version bigint, title text, event text);
    create table writes (n integer primary key, entity text, event text);
    create trigger docs_insert after insert on docs begin
        insert into writes (entity, event) values (new.entity, new.event); end;
    create trigger docs_update after update on docs begin
        insert into writes (entity, event) values (new.entity, new.event); end;";

/// A source `docs` that keeps the table in step; `settings` are further lines of its own.
pub(crate) fn docs(settings: &str) -> String {
    source("docs", settings)
}

/// Like [`docs`] under another id.
pub(crate) fn source(id: &str, settings: &str) -> String {
    format!(
        "[[source]]\nid = \"{id}\"\nscheme = \"timestamped\"\nsecrets = [\"test\"]\n{settings}\n{MAPPING}"
    )
}

const MAPPING: &str = r#"
[source.map]
event_id = "/id"
scope = "/tenant"
event_type = "/type"
entity_id = "/entity"
version = "/version"
occurred_at = "/at"
content_hash = "/hash"
[[source.effect]]
kind = "upsert"
when = ["doc.created", "doc.updated"]
table = "docs"
key = { entity = "/entity" }
version_column = "version"
columns = { title = { from = "/title", optional = true }, event = "event:id" }
[[source.effect]]
kind = "delete"
when = ["doc.deleted"]
table = "docs"
key = { entity = "/entity" }
version_column = "version"
"#;

/// The body of an update of `entity` to `version`, titled like its event.
pub(crate) fn update(id: &str, entity: &str, version: i64) -> String {
    titled(id, entity, version, id)
}

/// The body of an update with a title of its own.
pub(crate) fn titled(id: &str, entity: &str, version: i64, title: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"doc.updated","entity":"{entity}","version":{version},"title":"{title}"}}"#
    )
}

/// Parses the `[[source]]` tables of a config file.
pub(crate) fn sources(text: &str) -> Vec<Source> {
    #[derive(serde::Deserialize)]
    struct File {
        source: Vec<SourceConfig>,
    }
    let file: File = toml::from_str(text).unwrap();
    let resolve = |_: &str| Ok(b"a-secret-of-this-test".to_vec());
    let build = |config| Source::build(config, &resolve).unwrap();
    file.source.into_iter().map(build).collect()
}
