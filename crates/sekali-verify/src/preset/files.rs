//! The texts of the presets, read when they are first asked for.

use std::sync::OnceLock;

use super::Preset;

/// One file.
pub(super) struct File {
    pub(super) name: &'static str,
    text: &'static str,
    read: OnceLock<Preset>,
}

impl File {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            read: OnceLock::new(),
        }
    }

    pub(super) fn read(&'static self) -> &'static Preset {
        self.read.get_or_init(|| {
            let mut preset: Preset = toml::from_str(self.text)
                .unwrap_or_else(|problem| panic!("the preset {} cannot be read: {problem}", self.name));
            preset.name = self.name;
            preset
        })
    }
}

/// Declares the files by the names of their presets.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// All presets, in alphabetical order.
        pub(super) static FILES: &[File] = &[
            $(File::new($name, include_str!(concat!("../presets/", $name, ".toml")))),*
        ];
    };
}

files! {
}
