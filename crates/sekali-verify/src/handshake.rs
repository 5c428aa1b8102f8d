//! Questions of a provider that are no events: a challenge to echo, a subscription to confirm.
//!
//! A handshake is data too: what makes a request one, what must hold for an answer, and the answer. Nothing
//! here goes out to the network; what has to be called or shown is handed to the caller.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;

use crate::json::{Json, Text};
use crate::outside::KeyDocuments;
use crate::prover::Prover;
use crate::rejection::{Rejection, SignatureProblem};
use crate::request::{Opened, Request};
use crate::scene::{Known, Scene};
use crate::scheme::{Condition, Part, Scheme, Spot, SpotDeclaration};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::signature::encode;
use crate::verify::Prove as _;

/// A question that a provider asks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Declaration")]
pub struct Handshake {
    /// Its name.
    pub name: String,
    methods: Vec<Method>,
    is_verified: bool,
    when: Vec<Condition>,
    require: Vec<Condition>,
    refuse: u16,
    self_key: Option<Spot>,
    reply: ReplyDeclaration,
    confirm: Option<(Spot, Vec<String>)>,
    show: Option<Spot>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    name: String,
    #[serde(default)]
    methods: Vec<String>,
    verified: Option<bool>,
    #[serde(default)]
    when: Vec<Condition>,
    #[serde(default)]
    require: Vec<Condition>,
    #[serde(default = "forbidden")]
    refuse: u16,
    self_key: Option<SpotDeclaration>,
    #[serde(default)]
    reply: ReplyDeclaration,
    confirm: Option<ConfirmDeclaration>,
    show: Option<SpotDeclaration>,
}

fn forbidden() -> u16 {
    403
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReplyDeclaration {
    status: u16,
    content_type: Option<String>,
    headers: BTreeMap<String, Part>,
    text: Vec<Part>,
    json: Option<BTreeMap<String, Part>>,
}

impl Default for ReplyDeclaration {
    fn default() -> Self {
        Self {
            status: 200,
            content_type: None,
            headers: BTreeMap::new(),
            text: Vec::new(),
            json: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfirmDeclaration {
    url: SpotDeclaration,
    hosts: Vec<String>,
}

impl TryFrom<Declaration> for Handshake {
    type Error = String;

    fn try_from(declared: Declaration) -> Result<Self, String> {
        let spot = |spot: SpotDeclaration| spot.spot().map_err(|unfit| unfit.to_string());
        let methods: Result<Vec<Method>, _> = declared
            .methods
            .iter()
            .map(|method| method.parse())
            .collect();
        let mut methods = methods.map_err(|_| "a method is no HTTP method".to_owned())?;
        if methods.is_empty() {
            methods.push(Method::POST);
        }
        let is_post = methods.contains(&Method::POST);
        if is_post && declared.when.is_empty() {
            return Err("a handshake by POST needs `when`: it would hide every event".to_owned());
        }
        let confirm = match declared.confirm {
            Some(confirm) => Some((spot(confirm.url)?, confirm.hosts)),
            None => None,
        };
        Ok(Self {
            name: declared.name,
            is_verified: declared.verified.unwrap_or(is_post),
            methods,
            when: declared.when,
            require: declared.require,
            refuse: declared.refuse,
            self_key: declared.self_key.map(spot).transpose()?,
            reply: declared.reply,
            confirm,
            show: declared.show.map(spot).transpose()?,
        })
    }
}

/// The answer to a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers, the content type included.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether the provider's question was answered, and not refused.
    pub is_answered: bool,
    /// An address to call, and the hosts that are allowed.
    pub confirm: Option<(String, Vec<String>)>,
    /// A text for the operator; it is a secret.
    pub show: Option<Secret>,
}

impl Handshake {
    /// Lists the methods that it is asked with.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Tells whether the request must be proven first.
    pub fn is_verified(&self) -> bool {
        self.is_verified && self.self_key.is_none()
    }

    /// Tells whether the operator learns the secret from it, so that a source may start without one.
    pub fn brings_secret(&self) -> bool {
        self.self_key.is_some()
    }

    /// Lists the settings that it cannot do without.
    pub fn settings(&self) -> impl Iterator<Item = &str> {
        let conditions = self.when.iter().chain(&self.require);
        conditions.filter_map(Condition::setting)
    }
}

impl Condition {
    /// Names the setting that the value is held against.
    pub(crate) fn setting(&self) -> Option<&str> {
        match &self.test {
            crate::scheme::Test::Setting(name) | crate::scheme::Test::InSetting(name) => Some(name),
            _ => None,
        }
    }
}

/// Tells whether all conditions hold for a request; settings are none.
pub fn all_hold(conditions: &[Condition], request: &Request<'_>) -> bool {
    let (opened, settings) = (Opened::new(*request), Settings::default());
    let scene = Scene {
        opened: &opened,
        element: None,
        settings: &settings,
    };
    conditions.iter().all(|condition| scene.holds(condition))
}

impl Prover {
    /// Finds the handshake that a request is, if it is one.
    pub fn handshake<'h>(
        &self,
        handshakes: &'h [Handshake],
        request: &Request<'_>,
    ) -> Option<&'h Handshake> {
        let mut asked = handshakes
            .iter()
            .filter(|handshake| handshake.methods.contains(request.method))
            .peekable();
        // Most deliveries end here: nothing is parsed for them.
        asked.peek()?;
        let opened = Opened::new(*request);
        let scene = self.scene(&opened);
        asked.find(|handshake| {
            handshake
                .when
                .iter()
                .all(|condition| scene.holds(condition))
        })
    }

    /// Answers a handshake; one that must be proven first was.
    pub fn answer(
        &self,
        handshake: &Handshake,
        request: &Request<'_>,
        now_ms: i64,
        documents: &dyn KeyDocuments,
    ) -> Result<Reply, Rejection> {
        let opened = Opened::new(*request);
        let scene = self.scene(&opened);
        if let Some(spot) = &handshake.self_key {
            let key = scene.value(spot)?.ok_or(SignatureProblem::Missing)?;
            self.with_key(&key)?.verify(request, now_ms, documents)?;
            // Anybody can sign with a key of their own; once the operator has the right one, only that counts.
            if self.lanes.iter().any(|lane| !lane.keys.is_empty()) {
                self.verify(request, now_ms, documents)?;
            }
        }
        if !handshake
            .require
            .iter()
            .all(|condition| scene.holds(condition))
        {
            return Ok(Reply {
                status: handshake.refuse,
                headers: HeaderMap::new(),
                body: Bytes::new(),
                is_answered: false,
                confirm: None,
                show: None,
            });
        }
        let mut reply = self.write(&handshake.reply, &scene)?;
        let text = |spot: &Spot| -> Option<String> {
            String::from_utf8(scene.value(spot).ok()??.into_owned()).ok()
        };
        if let Some((spot, hosts)) = &handshake.confirm {
            reply.confirm = text(spot).map(|url| (url, hosts.clone()));
        }
        let shown = handshake.show.as_ref().and_then(text);
        reply.show = shown.map(|text| Secret::of_any_length(text.as_bytes()));
        Ok(reply)
    }

    fn scene<'o, 'a>(&'o self, opened: &'o Opened<'a>) -> Scene<'o, 'a> {
        Scene {
            opened,
            element: None,
            settings: &self.settings,
        }
    }

    /// Makes a prover for a key that the request itself brings.
    fn with_key(&self, key: &[u8]) -> Result<Prover, Rejection> {
        let schemes: Vec<Scheme> = self.lanes.iter().map(|lane| lane.scheme.clone()).collect();
        let secrets = [Secret::of_any_length(key)];
        Prover::new(&schemes, &secrets, self.settings.clone(), self.window())
            .map_err(|_| SignatureProblem::Malformed.into())
    }

    fn write(&self, reply: &ReplyDeclaration, scene: &Scene<'_, '_>) -> Result<Reply, Rejection> {
        let mut headers = HeaderMap::new();
        for (name, part) in &reply.headers {
            let Ok(name) = name.parse::<HeaderName>() else {
                continue;
            };
            if let Ok(value) = HeaderValue::from_bytes(&self.reply_piece(part, scene)?) {
                headers.insert(name, value);
            }
        }
        let (body, default_type) = match &reply.json {
            Some(members) => (self.reply_json(members, scene)?, Some("application/json")),
            None => {
                let pieces = reply.text.iter().map(|part| self.reply_piece(part, scene));
                let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
                (
                    pieces.concat(),
                    (!pieces.is_empty()).then_some("text/plain"),
                )
            }
        };
        let content_type = reply.content_type.as_deref().or(default_type);
        if let Some(Ok(value)) = content_type.map(HeaderValue::from_str) {
            headers.insert(http::header::CONTENT_TYPE, value);
        }
        Ok(Reply {
            status: reply.status,
            headers,
            body: body.into(),
            is_answered: true,
            confirm: None,
            show: None,
        })
    }

    fn reply_json(
        &self,
        members: &BTreeMap<String, Part>,
        scene: &Scene<'_, '_>,
    ) -> Result<Vec<u8>, Rejection> {
        let text = |bytes: &[u8]| Text::Unescaped(String::from_utf8_lossy(bytes).into_owned());
        let member = |(name, part): (&String, &Part)| {
            let value = self.reply_piece(part, scene)?;
            Ok((text(name.as_bytes()), Json::String(text(&value))))
        };
        let members: Result<Vec<_>, Rejection> = members.iter().map(member).collect();
        Ok(Json::Object(members?).to_string().into_bytes())
    }

    fn reply_piece(&self, part: &Part, scene: &Scene<'_, '_>) -> Result<Bytes, Rejection> {
        let url = scene.opened.request.url;
        let known = Known {
            url,
            ..Known::default()
        };
        let Part::Mac(inner) = part else {
            let piece = scene.pieces(std::slice::from_ref(part), known)?.pop();
            return Ok(piece.unwrap_or_default());
        };
        let text = scene.pieces(std::slice::from_ref(&**inner), known)?;
        let lane = self.lanes.first().ok_or(SignatureProblem::Missing)?;
        let (_, key) = lane.keys.last().ok_or(SignatureProblem::Missing)?;
        let mac = key
            .sign(lane.scheme.algorithm, &text)
            .ok_or(SignatureProblem::Missing)?;
        Ok(encode(lane.scheme.signature.encoding, &mac).into())
    }
}
