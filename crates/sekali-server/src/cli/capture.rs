//! Captured requests, in the forms in which people have them: raw HTTP, what `curl -v` prints, HAR, and our own JSON.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;

/// A request that somebody captured.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    pub(super) method: Method,
    /// Absolute where the capture says so, else the path.
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Reads a capture, whichever form it has.
pub(super) fn parse(text: &[u8]) -> anyhow::Result<Captured> {
    if let Ok(json) = serde_json::from_slice::<Value>(text) {
        return from_json(&json);
    }
    let is_curl = text
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"> "));
    match is_curl {
        true => from_curl(text),
        false => from_raw(text),
    }
}

fn from_json(json: &Value) -> anyhow::Result<Captured> {
    match &json["log"]["entries"] {
        Value::Array(entries) => {
            let is_post = |entry: &&Value| entry["request"]["method"] == "POST";
            let entry = entries.iter().find(is_post).or(entries.first());
            from_har(&entry.context("the HAR file has no entry")?["request"])
        }
        _ if json["headers"].is_object() || json["headers"].is_array() => {
            let body = json["body"].as_str().unwrap_or_default();
            of(
                json,
                &json["headers"],
                Bytes::copy_from_slice(body.as_bytes()),
            )
        }
        _ => bail!("the JSON is neither a HAR file nor an object with url, headers and body"),
    }
}

fn from_har(request: &Value) -> anyhow::Result<Captured> {
    use base64::Engine as _;
    let data = &request["postData"];
    let text = data["text"].as_str().unwrap_or_default();
    let body = match data["encoding"].as_str() {
        Some("base64") => base64::prelude::BASE64_STANDARD
            .decode(text)
            .context("the body of the HAR entry is no base64")?,
        _ => text.as_bytes().to_vec(),
    };
    of(request, &request["headers"], body.into())
}

fn of(request: &Value, headers: &Value, body: Bytes) -> anyhow::Result<Captured> {
    let method = request["method"].as_str().unwrap_or("POST");
    let mut captured = Captured {
        method: method.parse().context("the method is no HTTP method")?,
        url: request["url"].as_str().unwrap_or_default().to_owned(),
        headers: HeaderMap::new(),
        body,
    };
    match headers {
        Value::Object(pairs) => {
            for (name, value) in pairs {
                captured.add(name, value.as_str().unwrap_or_default())?;
            }
        }
        Value::Array(list) => {
            for pair in list {
                let name = pair["name"]
                    .as_str()
                    .or(pair[0].as_str())
                    .unwrap_or_default();
                let value = pair["value"]
                    .as_str()
                    .or(pair[1].as_str())
                    .unwrap_or_default();
                // HTTP/2's own fields are no headers.
                if !name.starts_with(':') {
                    captured.add(name, value)?;
                }
            }
        }
        _ => {}
    }
    Ok(captured)
}

/// Reads the lines that `curl -v` marks with `>`; the body comes from elsewhere.
fn from_curl(text: &[u8]) -> anyhow::Result<Captured> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().filter_map(|line| line.strip_prefix("> "));
    head(lines.map(str::trim_end), Bytes::new())
}

/// Reads a request as it goes over the wire; a body that was cut is not noticed here.
fn from_raw(text: &[u8]) -> anyhow::Result<Captured> {
    let ends = [&b"\r\n\r\n"[..], b"\n\n"];
    let find = |end: &&[u8]| {
        let at = text.windows(end.len()).position(|part| part == *end)?;
        Some((at, at + end.len()))
    };
    let found = ends.iter().filter_map(find).min();
    let (end, start) = found.unwrap_or((text.len(), text.len()));
    let lines = String::from_utf8_lossy(&text[..end]).into_owned();
    head(lines.lines(), Bytes::copy_from_slice(&text[start..]))
}

fn head<'l>(mut lines: impl Iterator<Item = &'l str>, body: Bytes) -> anyhow::Result<Captured> {
    let first = lines.next().context("the file is empty")?;
    let mut words = first.split(' ');
    let (method, url) = (words.next().unwrap_or_default(), words.next());
    let Some(url) = url else {
        bail!("the first line is no request line such as POST /hooks/stripe HTTP/1.1");
    };
    let mut captured = Captured {
        method: method
            .parse()
            .context("the first line has no HTTP method")?,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        body,
    };
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line
            .split_once(':')
            .with_context(|| format!("`{line}` is no header"))?;
        captured.add(name.trim(), value.trim())?;
    }
    Ok(captured)
}

impl Captured {
    fn add(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        let name: HeaderName = name
            .parse()
            .with_context(|| format!("`{name}` is no header name"))?;
        let value = HeaderValue::from_bytes(value.as_bytes())
            .with_context(|| format!("the value of {name} fits into no header"))?;
        self.headers.append(name, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_read(text: &str, url: &str, body: &str) {
        let captured = parse(text.as_bytes()).unwrap();
        assert_eq!(
            (captured.method, captured.url.as_str()),
            (Method::POST, url),
            "{text}"
        );
        assert_eq!(captured.headers["x-sig"], "v1=ab", "{text}");
        assert_eq!(captured.body, body, "{text}");
    }

    #[test]
    fn every_form_is_read() {
        assert_read(
            "POST /a?b HTTP/1.1\r\nHost: h\r\nX-Sig: v1=ab\r\n\r\n{\"x\":1}\n",
            "/a?b",
            "{\"x\":1}\n",
        );
        assert_read("POST /a HTTP/1.1\nX-Sig:v1=ab\n\n{}", "/a", "{}");
        assert_read(
            "* Connected\n> POST /a HTTP/1.1\r\n> X-Sig: v1=ab\r\n> \n< HTTP/1.1 200 OK\n",
            "/a",
            "",
        );
        assert_read(
            r#"{"url":"https://h/a","headers":{"X-Sig":"v1=ab"},"body":"{}"}"#,
            "https://h/a",
            "{}",
        );
        let har = r#"{"log":{"entries":[{"request":{"method":"GET","url":"x","headers":[]}},
            {"request":{"method":"POST","url":"https://h/a","headers":[{"name":":path","value":"/"},{"name":"X-Sig","value":"v1=ab"}],
            "postData":{"text":"e30=","encoding":"base64"}}}]}}"#;
        assert_read(har, "https://h/a", "{}");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in [
            "",
            "nonsense",
            "{}",
            "[1]",
            "POST /a HTTP/1.1\nno header\n\n",
            "{\"log\":{\"entries\":[]}}",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
