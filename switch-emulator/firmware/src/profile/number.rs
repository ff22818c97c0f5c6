//! A number of a profile with its source and range.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Where a number comes from; the profile's head says what each word means.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum NumberSource {
    Paper,
    Fit,
    Count,
    Datasheet,
    Assumption,
    Measured,
}

/// A number as it is written in a profile: with its source. The key that holds it names its unit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Number_{T}")]
#[expect(dead_code, reason = "most of it is read only to be checked")]
pub struct Sourced<T> {
    value: T,
    source: NumberSource,
    /// Lowest and highest value that the source allows.
    range: Option<[T; 2]>,
    #[serde(default)]
    note: String,
    /// Standard error of a measured number.
    #[schemars(range(min = 0))]
    standard_error: Option<f64>,
    /// How many samples a measured number rests on.
    samples: Option<NonZeroU64>,
    /// The procedures of `loko bench` that gave a measured number.
    #[serde(default)]
    procedure: String,
}

/// Declares a section of a profile. Its fields of type `i64`, `u64`, `u8`, `f64` and `Option<u64>` are numbers with their
/// sources ([`Sourced`]), of which only the value is kept.
#[macro_export]
macro_rules! section {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::section! { @ [$(#[$meta])*] $name {} $($fields)* }
    };
    (@ $head:tt $name:ident $done:tt $(#[$meta:meta])* $field:ident: i64, $($rest:tt)*) => {
        $crate::section! { @number "Sourced<i64>" i64 $head $name $done [$(#[$meta])*] $field $($rest)* }
    };
    (@ $head:tt $name:ident $done:tt $(#[$meta:meta])* $field:ident: u64, $($rest:tt)*) => {
        $crate::section! { @number "Sourced<u64>" u64 $head $name $done [$(#[$meta])*] $field $($rest)* }
    };
    (@ $head:tt $name:ident $done:tt $(#[$meta:meta])* $field:ident: u8, $($rest:tt)*) => {
        $crate::section! { @number "Sourced<u8>" u8 $head $name $done [$(#[$meta])*] $field $($rest)* }
    };
    (@ $head:tt $name:ident $done:tt $(#[$meta:meta])* $field:ident: f64, $($rest:tt)*) => {
        $crate::section! { @number "Sourced<f64>" f64 $head $name $done [$(#[$meta])*] $field $($rest)* }
    };
    (@ $head:tt $name:ident {$($done:tt)*} $(#[$meta:meta])* $field:ident: Option<u64>, $($rest:tt)*) => {
        $crate::section! { @ $head $name {
            $($done)*
            $(#[$meta])*
            #[serde(default, deserialize_with = "some_number")]
            #[schemars(with = "Option<Sourced<u64>>")]
            pub $field: Option<u64>,
        } $($rest)* }
    };
    (@ $head:tt $name:ident {$($done:tt)*} $(#[$meta:meta])* $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::section! { @ $head $name { $($done)* $(#[$meta])* pub $field: $type, } $($rest)* }
    };
    (@number $form:literal $type:ident $head:tt $name:ident {$($done:tt)*} [$(#[$meta:meta])*] $field:ident
     $($rest:tt)*) => {
        $crate::section! { @ $head $name {
            $($done)*
            $(#[$meta])*
            #[serde(deserialize_with = "number")]
            #[schemars(with = $form)]
            pub $field: $type,
        } $($rest)* }
    };
    (@ [$(#[$meta:meta])*] $name:ident {$($fields:tt)*}) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($fields)* }
    };
}

/// Type of a number in a profile.
pub trait Number: Sized + PartialOrd + fmt::Display {
    /// Returns the number, if it is in the type's range.
    fn from_i64(value: i64) -> Option<Self>;
    /// Returns the number, if the type holds it.
    fn from_f64(value: f64) -> Option<Self>;
}

impl Number for i64 {
    fn from_i64(value: i64) -> Option<Self> {
        // Products with the length of a frame, and sums over a whole table, must stay far from overflow.
        (value.unsigned_abs() <= 1_000_000_000_000).then_some(value)
    }
    fn from_f64(_: f64) -> Option<Self> {
        None
    }
}

impl Number for u64 {
    fn from_i64(value: i64) -> Option<Self> {
        i64::from_i64(value).and_then(|value| Self::try_from(value).ok())
    }
    fn from_f64(_: f64) -> Option<Self> {
        None
    }
}

impl Number for u8 {
    fn from_i64(value: i64) -> Option<Self> {
        u64::from_i64(value).map(|value| Self::try_from(value).unwrap_or(Self::MAX))
    }
    fn from_f64(_: f64) -> Option<Self> {
        None
    }
}

impl Number for f64 {
    #[allow(clippy::cast_precision_loss)] // numbers in a profile are small
    fn from_i64(value: i64) -> Option<Self> {
        Some(value as Self)
    }
    fn from_f64(value: f64) -> Option<Self> {
        value.is_finite().then_some(value)
    }
}

/// Reads a number of a profile, plain or as `{ value, source, range, note }`, with `standard_error`, `samples` and
/// `procedure` too if it was measured; for `deserialize_with`.
///
/// # Errors
/// The reader's, if it is no number of that type, or its source is unknown. The range says how sure a number is: somebody who
/// tries another device may leave it, and the programs that read profiles warn of it.
pub fn number<'de, D: Deserializer<'de>, T: Number + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct NumberVisitor<T>(PhantomData<T>);

    impl<'de, T: Number + Deserialize<'de>> Visitor<'de> for NumberVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number or a table { value, source, range, note }")
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<T, E> {
            T::from_i64(value).ok_or_else(|| E::custom(format!("{value} is out of range")))
        }

        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<T, E> {
            T::from_f64(value).ok_or_else(|| E::custom(format!("{value} is not a whole number")))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let found =
                Sourced::<T>::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
            if found.standard_error.is_some_and(|error| error < 0.0) {
                return Err(serde::de::Error::custom(
                    "standard_error: choose at least 0",
                ));
            }
            Ok(found.value)
        }
    }

    deserializer.deserialize_any(NumberVisitor(PhantomData))
}

/// Reads a number that may be absent; otherwise as [`number`].
///
/// # Errors
/// As [`number`].
pub fn some_number<'de, D: Deserializer<'de>, T: Number + Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    number(deserializer).map(Some)
}
