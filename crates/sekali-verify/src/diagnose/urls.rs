//! URLs that the sender may have called, where a proxy changed what the receiver sees.

use crate::request::{Request, split_authority};

type Variant = (&'static str, &'static str, String);

const SCHEME: &str = "a proxy in front speaks https: set public_url, or list it in trusted_proxies";
const HOST: &str =
    "a proxy in front has another name: set public_url, or list it in trusted_proxies";
const PATH: &str = "a proxy in front changes the path: set the source's public_url";
const PORT: &str = "the port is part of what was signed: set public_url";

/// Lists other URLs, the likeliest first.
pub(super) fn variants(request: &Request<'_>) -> Vec<Variant> {
    let url = request.url;
    let (front, target) = split_authority(url);
    let mut all: Vec<Variant> = Vec::new();
    let swapped = match front.strip_prefix("http://") {
        Some(authority) => format!("https://{authority}"),
        None => front.replacen("https://", "http://", 1),
    };
    all.push(("url_scheme", SCHEME, format!("{swapped}{target}")));
    for name in ["x-forwarded-host", "host"] {
        let value = request
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok());
        for scheme in ["https", "http"] {
            all.extend(value.map(|host| ("url_host", HOST, format!("{scheme}://{host}{target}"))));
        }
    }
    for front in [front, &swapped] {
        let without = front
            .rfind(':')
            .filter(|colon| !front[*colon..].starts_with("://"));
        if let Some(colon) = without {
            all.push(("url_port", PORT, format!("{}{target}", &front[..colon])));
        } else {
            for port in [443, 80] {
                all.push(("url_port", PORT, format!("{front}:{port}{target}")));
            }
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (target, String::new()),
        };
        all.push((
            "url_path",
            PATH,
            format!("{front}{}/{query}", path.trim_end_matches('/')),
        ));
        all.push((
            "url_path",
            PATH,
            format!("{front}{}{query}", path.trim_end_matches('/')),
        ));
        let original = request
            .headers
            .get("x-original-uri")
            .or(request.headers.get("x-forwarded-uri"));
        let original = original.and_then(|value| value.to_str().ok());
        all.extend(original.map(|path| ("url_path", PATH, format!("{front}{path}"))));
    }
    all.retain(|(_, _, other)| other != url);
    all
}
