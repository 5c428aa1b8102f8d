//! Places as they are written, and back.

use std::fmt;
use std::str::FromStr;

use http::HeaderName;

use super::{Path, Piece, Place};

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return text.parse().map(Self::Body);
        }
        if text.starts_with("../") {
            let (levels, path) = above(text)?;
            return Ok(Self::Above(levels, path));
        }
        // In these, braces are steps of a path or plain text.
        let is_whole = ["literal:", "inner:/", "key:/", "hash:/"]
            .iter()
            .any(|front| text.starts_with(front));
        if text.contains('{') && !is_whole {
            return joined(text);
        }
        let (kind, name) = text.split_once(':').ok_or_else(|| unknown(text))?;
        if name.is_empty() {
            return Err(unknown(text));
        }
        let header = || {
            let parsed: Result<HeaderName, _> = name.parse();
            parsed.map_err(|_| format!("{name} is no header name"))
        };
        Ok(match kind {
            "key" => Self::Key(name.parse()?),
            "inner" => Self::Inner(name.parse()?),
            "header" => Self::Header(header()?),
            "decoded-header" => Self::DecodedHeader(header()?),
            "query" => Self::Query(name.to_owned()),
            "form" => Self::Form(name.to_owned()),
            "xml" => {
                let steps = name.strip_prefix('/').ok_or_else(|| unknown(text))?;
                Self::Xml(steps.split('/').map(str::to_owned).collect())
            }
            "tail" => Self::Tail(name.parse().map_err(|_| unknown(text))?),
            "literal" => Self::Literal(name.to_owned()),
            "count" => {
                let (levels, path) = above(name)?;
                Self::Count(levels, path)
            }
            "hash" if name == "body" => Self::HashBody,
            "hash" => Self::Hash(Box::new(name.parse()?)),
            _ => return Err(unknown(text)),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = |levels: &usize| "../".repeat(*levels);
        // Only the first slash is ours: a step may be empty.
        let rest = |path: &Path| {
            let text = path.to_string();
            text.strip_prefix('/').unwrap_or_default().to_owned()
        };
        match self {
            Self::Body(path) => path.fmt(f),
            Self::Above(levels, path) => write!(f, "{}{}", above(levels), rest(path)),
            Self::Key(path) => write!(f, "key:{path}"),
            Self::Inner(path) => write!(f, "inner:{path}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::DecodedHeader(name) => write!(f, "decoded-header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Form(name) => write!(f, "form:{name}"),
            Self::Xml(steps) => write!(f, "xml:/{}", steps.join("/")),
            Self::Tail(index) => write!(f, "tail:{index}"),
            Self::Literal(text) => write!(f, "literal:{text}"),
            Self::Count(levels, path) => write!(f, "count:{}{}", above(levels), rest(path)),
            Self::HashBody => f.write_str("hash:body"),
            Self::Hash(place) => write!(f, "hash:{place}"),
            Self::Join(pieces) => pieces.iter().try_for_each(|piece| match piece {
                Piece::Text(text) => f.write_str(text),
                Piece::Needed(place) => write!(f, "{{{place}}}"),
                Piece::Optional(place) => write!(f, "{{{place}?}}"),
            }),
        }
    }
}

fn unknown(text: &str) -> String {
    format!(
        "{text} is neither a JSON pointer (/a/b) nor one of header:Name, decoded-header:Name, query:name, form:name, \
         xml:/a/b, tail:0, key:/a, inner:/a, literal:text, count:../a, hash:body and texts with {{places}} in them"
    )
}

fn above(text: &str) -> Result<(usize, Path), String> {
    let (mut levels, mut rest) = (0, text);
    while let Some(after) = rest.strip_prefix("../") {
        levels += 1;
        rest = after;
    }
    Ok((levels, format!("/{rest}").parse()?))
}

fn joined(text: &str) -> Result<Place, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((front, after)) = rest.split_once('{') {
        if !front.is_empty() {
            pieces.push(Piece::Text(front.to_owned()));
        }
        // A place may have braces of its own: `{/payload/{/contains/0}/id}`.
        let end = closing(after).ok_or_else(|| format!("`{text}` lacks a closing brace"))?;
        let place = &after[..end];
        pieces.push(match place.strip_suffix('?') {
            Some(place) => Piece::Optional(place.parse()?),
            None => Piece::Needed(place.parse()?),
        });
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(Place::Join(pieces))
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(index),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}
