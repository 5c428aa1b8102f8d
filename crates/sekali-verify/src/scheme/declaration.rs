//! Schemes and conditions as they are written, before their parts were held against each other.

use http::HeaderName;
use serde::Deserialize;
use thiserror::Error;

use super::consistency::{check_key, check_label, check_outside, check_signed, check_time};
use super::{
    Algorithm, Condition, Encoding, Entries, JwtRules, KeyForm, OutsideKeys, Part, Scheme,
    Signature, Spot, Test, Time, TimeUnit,
};
use crate::batch::Pattern;
use crate::json::Pointer;

/// The reason why a declaration cannot be used.
#[derive(Debug, Error)]
pub(crate) enum Unfit {
    #[error(
        "`signed` must name the body, the timestamp or another part of the request: literals alone prove nothing"
    )]
    NothingSigned,
    #[error("`signed` has no meaning with the algorithms \"equals\" and \"jwt\"")]
    SignedUnused,
    #[error("`time` is set, but `signed` lacks \"timestamp\": an unsigned time proves nothing")]
    TimeNotSigned,
    #[error("`signed` contains \"timestamp\", but `time` does not say where it stands")]
    TimeNotPlaced,
    #[error("the signature and the time cannot be the same entry")]
    SameEntry,
    #[error("`label` must be visible ASCII without its own separators")]
    Label,
    #[error("one place is needed, and only one: {0}")]
    Spots(&'static str),
    #[error(
        "a condition has at most one of is, one_of, absent, setting, in_setting, hex and not_hex"
    )]
    Tests,
    #[error("the plain hashes need the secret as the part \"key\", and only they")]
    KeyPart,
    #[error("`key` does not fit the algorithm")]
    Key,
    #[error("{0}")]
    Outside(&'static str),
}

/// The places that can be written; each table has exactly one of them.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) header: Option<String>,
    pub(crate) numbered: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) json: Option<Pointer>,
    pub(crate) form: Option<String>,
    pub(crate) claim: Option<String>,
    pub(crate) tail: Option<usize>,
    pub(crate) method: bool,
    pub(crate) content_type: bool,
}

impl Fields {
    /// Finds the one place that is written.
    pub(crate) fn spot(self) -> Result<Spot, Unfit> {
        const NAMES: &str =
            "header, numbered, query, json, form, claim, tail, method or content_type";
        let header = match self.header {
            Some(name) => Some(Spot::Header(header(&name)?)),
            None => None,
        };
        let all = [
            header,
            self.numbered.map(Spot::Numbered),
            self.query.map(Spot::Query),
            self.json.map(Spot::Json),
            self.form.map(Spot::Form),
            self.claim.map(Spot::Claim),
            self.tail.map(Spot::Tail),
            self.method.then_some(Spot::Method),
            self.content_type.then_some(Spot::ContentType),
        ];
        let mut written = all.into_iter().flatten();
        match (written.next(), written.next()) {
            (Some(spot), None) => Ok(spot),
            _ => Err(Unfit::Spots(NAMES)),
        }
    }
}

fn header(name: &str) -> Result<HeaderName, Unfit> {
    name.parse()
        .map_err(|_| Unfit::Outside("a name is no header name"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declaration {
    #[serde(default)]
    when: Vec<Condition>,
    #[serde(default)]
    signed: Vec<Part>,
    algorithm: Algorithm,
    #[serde(default)]
    key: KeyForm,
    key_prefix: Option<String>,
    #[serde(default)]
    key_prefix_needed: bool,
    signature: SignatureDeclaration,
    time: Option<TimeDeclaration>,
    #[serde(default)]
    url_ports: bool,
    body_hash: Option<SpotDeclaration>,
    each: Option<Pattern>,
    jwt: Option<JwtRules>,
    keys: Option<OutsideKeys>,
}

/// A place alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpotDeclaration {
    header: Option<String>,
    query: Option<String>,
    json: Option<Pointer>,
    form: Option<String>,
    claim: Option<String>,
}

impl SpotDeclaration {
    pub(crate) fn spot(self) -> Result<Spot, Unfit> {
        let fields = Fields {
            header: self.header,
            query: self.query,
            json: self.json,
            form: self.form,
            claim: self.claim,
            ..Fields::default()
        };
        fields.spot()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureDeclaration {
    header: Option<String>,
    numbered: Option<String>,
    query: Option<String>,
    json: Option<Pointer>,
    form: Option<String>,
    tail: Option<usize>,
    #[serde(default)]
    separator: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    label_optional: bool,
    encoding: Encoding,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeDeclaration {
    header: Option<String>,
    json: Option<Pointer>,
    claim: Option<String>,
    #[serde(default)]
    separator: String,
    #[serde(default)]
    label: String,
    unit: TimeUnit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConditionDeclaration {
    header: Option<String>,
    query: Option<String>,
    json: Option<Pointer>,
    form: Option<String>,
    #[serde(default)]
    method: bool,
    #[serde(default)]
    content_type: bool,
    is: Option<String>,
    one_of: Option<Vec<String>>,
    #[serde(default)]
    absent: bool,
    setting: Option<String>,
    in_setting: Option<String>,
    hex: Option<(usize, usize)>,
    not_hex: Option<(usize, usize)>,
}

impl TryFrom<ConditionDeclaration> for Condition {
    type Error = Unfit;

    fn try_from(declared: ConditionDeclaration) -> Result<Self, Unfit> {
        let tests = [
            declared.is.map(|text| Test::OneOf(vec![text])),
            declared.one_of.map(Test::OneOf),
            declared.absent.then_some(Test::Absent),
            declared.setting.map(Test::Setting),
            declared.in_setting.map(Test::InSetting),
            declared.hex.map(|(min, max)| Test::Hex(min, max)),
            declared.not_hex.map(|(min, max)| Test::NotHex(min, max)),
        ];
        let mut written = tests.into_iter().flatten();
        let test = match (written.next(), written.next()) {
            (_, Some(_)) => return Err(Unfit::Tests),
            (test, None) => test.unwrap_or(Test::Present),
        };
        let fields = Fields {
            header: declared.header,
            query: declared.query,
            json: declared.json,
            form: declared.form,
            method: declared.method,
            content_type: declared.content_type,
            ..Fields::default()
        };
        Ok(Self {
            spot: fields.spot()?,
            test,
        })
    }
}

impl TryFrom<SignatureDeclaration> for Signature {
    type Error = Unfit;

    fn try_from(declared: SignatureDeclaration) -> Result<Self, Unfit> {
        let fields = Fields {
            header: declared.header,
            numbered: declared.numbered,
            query: declared.query,
            json: declared.json,
            form: declared.form,
            tail: declared.tail,
            ..Fields::default()
        };
        let entries = Entries {
            separator: declared.separator,
            label: declared.label,
            label_optional: declared.label_optional,
        };
        check_label(&entries)?;
        Ok(Self {
            spot: fields.spot()?,
            entries,
            encoding: declared.encoding,
        })
    }
}

impl TryFrom<TimeDeclaration> for Time {
    type Error = Unfit;

    fn try_from(declared: TimeDeclaration) -> Result<Self, Unfit> {
        let fields = Fields {
            header: declared.header,
            json: declared.json,
            claim: declared.claim,
            ..Fields::default()
        };
        let entries = Entries {
            separator: declared.separator,
            label: declared.label,
            label_optional: false,
        };
        check_label(&entries)?;
        Ok(Self {
            spot: fields.spot()?,
            entries,
            unit: declared.unit,
        })
    }
}

impl TryFrom<Declaration> for Scheme {
    type Error = Unfit;

    fn try_from(declared: Declaration) -> Result<Self, Unfit> {
        let signature = Signature::try_from(declared.signature)?;
        let time = declared.time.map(Time::try_from).transpose()?;
        check_signed(&declared.signed, declared.algorithm)?;
        check_key(declared.algorithm, declared.key)?;
        check_outside(
            declared.algorithm,
            declared.key,
            declared.jwt.as_ref(),
            declared.keys.as_ref(),
        )?;
        match &time {
            Some(time) => check_time(time, &declared.signed, &signature)?,
            None if declared.signed.contains(&Part::Timestamp) => return Err(Unfit::TimeNotPlaced),
            None => {}
        }
        Ok(Self {
            when: declared.when,
            signed: declared.signed.into(),
            algorithm: declared.algorithm,
            key: declared.key,
            key_prefix: declared.key_prefix,
            key_prefix_needed: declared.key_prefix_needed,
            signature,
            time,
            url_ports: declared.url_ports,
            body_hash: declared.body_hash.map(SpotDeclaration::spot).transpose()?,
            each: declared.each,
            jwt: declared.jwt,
            keys: declared.keys,
        })
    }
}
