//! What is said about a config file that cannot be read.

/// Says what is wrong with a config file: the line, and for an unknown key the nearest one that is known.
pub(super) fn explain(error: &toml::de::Error, text: &str, name: &str) -> String {
    let line = error
        .span()
        .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let place = line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"));
    let message = error.message();
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match words.split_first() {
        Some((unknown, known))
            if message.starts_with("unknown field") || message.starts_with("unknown variant") =>
        {
            let what = if message.starts_with("unknown field") {
                "key"
            } else {
                "value"
            };
            let near = known
                .iter()
                .map(|key| (strsim::damerau_levenshtein(unknown, key), key))
                .min();
            let hint = match near {
                Some((distance, key)) if distance <= 1 + unknown.len() / 3 => {
                    format!("did you mean `{key}`?")
                }
                _ => format!("there are {}", known.join(", ")),
            };
            format!("{place}: the {what} `{unknown}` is unknown; {hint}")
        }
        _ => format!("{place}: {message}"),
    }
}
