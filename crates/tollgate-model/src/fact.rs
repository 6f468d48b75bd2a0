//! Facts: a property of the environment with its source, or the reason why it is unknown.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bounded;

/// A property of the environment: known with its source, or unknown with the reason.
///
/// As JSON: `{"status": "known", "value": …, "source": "…"}` or `{"status": "unknown", "why": "…"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!try_from))]
#[serde(tag = "status", rename_all = "lowercase", try_from = "Fields")]
pub enum Fact {
    /// The value, and the file, instruction or call that gave it.
    Known {
        /// The value as it was read.
        value: FactValue,
        /// The source: a path, `CPUID.1:ECX[31]`, `uname(2)`.
        source: String,
    },
    /// Why there is no value. No default replaces it.
    Unknown {
        /// `absent: ` (this environment has no such thing), `refused: ` (it exists, but reading it is not permitted) or
        /// `unreadable: ` (reading failed, or the content could not be parsed), and the error's text.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        why: Unknown,
    },
}

/// serde would buffer an enum with a tag before it reads it.
#[derive(Deserialize)]
struct Fields {
    status: Status,
    value: Option<FactValue>,
    source: Option<String>,
    why: Option<Unknown>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Known,
    Unknown,
}

impl TryFrom<Fields> for Fact {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let Fields { status, value, source, why } = fields;
        Ok(match status {
            Status::Known => Self::Known {
                value: value.ok_or("missing field `value`")?,
                source: source.ok_or("missing field `source`")?,
            },
            Status::Unknown => Self::Unknown { why: why.ok_or("missing field `why`")? },
        })
    }
}

impl Fact {
    /// A known fact.
    pub fn known(value: impl Into<FactValue>, source: impl Into<String>) -> Self {
        Self::Known { value: value.into(), source: source.into() }
    }

    /// The environment has no such thing.
    pub fn absent(why: impl Into<String>) -> Self {
        Self::Unknown { why: Unknown::Absent(why.into()) }
    }

    /// It exists, but this process may not read it.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::Unknown { why: Unknown::Refused(why.into()) }
    }

    /// Reading failed, or the content could not be parsed.
    pub fn unreadable(why: impl Into<String>) -> Self {
        Self::Unknown { why: Unknown::Unreadable(why.into()) }
    }

    /// The value, if it is known.
    pub fn value(&self) -> Option<&FactValue> {
        match self {
            Self::Known { value, .. } => Some(value),
            Self::Unknown { .. } => None,
        }
    }
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum FactValue {
    /// Yes or no.
    Flag(bool),
    /// A count.
    Integer(i64),
    /// A measured or averaged figure, such as a load; always finite.
    Real(f64),
    /// Text as the source had it, trimmed.
    Text(String),
    /// Several texts, in the source's order.
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for FactValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        impl<'de> Visitor<'de> for Value {
            type Value = FactValue;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("true, false, a number, a text or a list of texts")
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<FactValue, E> {
                Ok(FactValue::Flag(flag))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<FactValue, E> {
                Ok(FactValue::Integer(n))
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<FactValue, E> {
                Ok(i64::try_from(n).map_or(FactValue::Real(n as f64), FactValue::Integer))
            }
            fn visit_f64<E: Error>(self, x: f64) -> Result<FactValue, E> {
                Ok(FactValue::Real(x))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<FactValue, E> {
                Ok(FactValue::Text(text.to_owned()))
            }
            fn visit_string<E: Error>(self, text: String) -> Result<FactValue, E> {
                Ok(FactValue::Text(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, texts: A) -> Result<FactValue, A::Error> {
                bounded::texts_of(texts).map(FactValue::List)
            }
        }
        deserializer.deserialize_any(Value)
    }
}

impl FactValue {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The flag, if it is one.
    pub fn as_flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The figure, if it is an integer or a real.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(n) => Some(*n as f64),
            Self::Real(x) => Some(*x),
            _ => None,
        }
    }
}

impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.write_str("yes"),
            Self::Flag(false) => f.write_str("no"),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Real(x) => write!(f, "{x}"),
            Self::Text(text) => f.write_str(text),
            Self::List(items) if items.is_empty() => f.write_str("none"),
            Self::List(items) => f.write_str(&items.join(", ")),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),+) => {
        $(impl From<$from> for FactValue {
            fn from(value: $from) -> Self {
                Self::$variant(value)
            }
        })+
    };
}
value_from!(bool => Flag, i64 => Integer, f64 => Real, String => Text, Vec<String> => List);

impl From<&str> for FactValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Why a fact has no value. Each of the three has another remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// The environment has no such thing: there is no remedy.
    Absent(String),
    /// Permission was refused: root, a capability or a setting gives access.
    Refused(String),
    /// Reading failed, or the content could not be parsed: a defect.
    Unreadable(String),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, why) = self.kind_and_why();
        write!(f, "{kind}: {why}")
    }
}

impl Unknown {
    /// `absent`, `refused` or `unreadable`, and the reason.
    pub fn kind_and_why(&self) -> (&'static str, &str) {
        match self {
            Self::Absent(why) => ("absent", why),
            Self::Refused(why) => ("refused", why),
            Self::Unreadable(why) => ("unreadable", why),
        }
    }
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Unknown {
    /// Text without one of the three prefixes, from another writer, is kept whole as unreadable.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.split_once(": ") {
            Some(("absent", why)) => Self::Absent(why.to_owned()),
            Some(("refused", why)) => Self::Refused(why.to_owned()),
            Some(("unreadable", why)) => Self::Unreadable(why.to_owned()),
            _ => Self::Unreadable(text),
        })
    }
}
